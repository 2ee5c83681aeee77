//! Where settings come from: files, and the command line; what the environment says is in `environment`.

use super::environment::Environment;
use super::error::{ConfigError, Origin};
use super::syntax::{self, Key};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest configuration file that is read, in bytes. RabbitMQ's own commented example has 40 kB.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// A key, its value as text, and where both stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub key: Key,
    pub value: String,
    pub origin: Origin,
}

/// Reads a configuration file. A name without `.conf` is tried with it too, as RabbitMQ does.
///
/// # Errors
/// `Read`, `TooLarge` or `Syntax`, naming the file.
pub fn file(path: &Path) -> Result<Vec<Setting>, ConfigError> {
    let mut path = path.to_owned();
    if !path.exists() {
        let mut with_ending = path.clone().into_os_string();
        with_ending.push(".conf");
        if Path::new(&with_ending).exists() {
            path = with_ending.into();
        }
    }
    let text = read(&path)?;
    text_of_file(&text, &path)
}

/// Reads the text of a configuration file; `path` is only named in origins.
///
/// # Errors
/// `Syntax`, with the first line that is no `key = value`.
pub fn text_of_file(text: &str, path: &Path) -> Result<Vec<Setting>, ConfigError> {
    let lines = syntax::parse(text).map_err(|e| ConfigError::Syntax {
        origin: Origin::File(path.to_owned(), e.number),
        what: e.what,
    })?;
    let setting = |line: syntax::ConfigLine| Setting {
        key: line.key,
        value: line.value,
        origin: Origin::File(path.to_owned(), line.number),
    };
    Ok(lines.into_iter().map(setting).collect())
}

/// The text of a file of configuration.
///
/// # Errors
/// `Read` or `TooLarge`.
pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let file = fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(ConfigError::TooLarge {
            path: path.to_owned(),
            most: FILE_BYTES_MAX,
        });
    }
    Ok(text)
}

/// The configuration files and directories that are read: `named`, or else the one of the environment; then those that
/// the environment adds. Where nobody names one, the usual ones are.
pub fn configurations(
    named: Option<&Path>,
    environment: &Environment,
    usual: (Option<PathBuf>, Option<PathBuf>),
) -> Vec<PathBuf> {
    let main = environment.first(&["LEVERET_CONFIG_FILE", "RABBITMQ_CONFIG_FILE"]);
    let main = named.map(Path::to_owned).or(main.map(PathBuf::from)).or(usual.0);
    let more = environment.first(&["LEVERET_CONFIG_FILES", "RABBITMQ_CONFIG_FILES"]);
    // RabbitMQ takes a pattern, which is always this one.
    let more = more.map(|text| PathBuf::from(text.strip_suffix("/*.conf").unwrap_or(text)));
    let more = more.or(usual.1);
    main.into_iter().chain(more).collect()
}

/// Where RabbitMQ's packages and images have the configuration.
pub const RABBITMQ_ETC: &str = "/etc/rabbitmq";

/// The configuration files in RabbitMQ's folder that are there: `rabbitmq.conf`, and the directory `conf.d` of further ones.
pub fn files_of_rabbitmq(etc: &Path) -> (Option<PathBuf>, Option<PathBuf>) {
    let main = Some(etc.join("rabbitmq.conf")).filter(|path| path.is_file());
    let more = Some(etc.join("conf.d")).filter(|path| path.is_dir());
    (main, more)
}

/// The `advanced.config` that is read: the one that `named` or the environment names, or the one that stands with the
/// configuration.
pub fn advanced_file(
    named: Option<&Path>,
    configurations: &[PathBuf],
    environment: &Environment,
) -> Option<PathBuf> {
    let of_environment =
        environment.first(&["LEVERET_ADVANCED_CONFIG_FILE", "RABBITMQ_ADVANCED_CONFIG_FILE"]);
    let found = named.map(Path::to_owned).or(of_environment.map(PathBuf::from));
    if let Some(mut path) = found {
        // As RabbitMQ, the ending may be left out.
        let with_ending = PathBuf::from(format!("{}.config", path.display()));
        if !path.exists() && with_ending.exists() {
            path = with_ending;
        }
        return Some(path);
    }
    beside(configurations, "advanced.config")
}

/// The `rabbitmq-env.conf` that is read: the one that the environment names, or the one that stands with the configuration.
pub fn environment_file(configurations: &[PathBuf], environment: &Environment) -> Option<PathBuf> {
    let named = environment.get("RABBITMQ_CONF_ENV_FILE").map(PathBuf::from);
    named.or_else(|| beside(configurations, "rabbitmq-env.conf"))
}

/// What is said of a file that a variable names and that isn't there; RabbitMQ does without it.
pub fn missing(variable: &str, path: &Path) -> String {
    format!(
        "environment variable {variable}: there is no file {}",
        path.display()
    )
}

/// The file of this name beside one of the configuration files or in their directory, if there is one.
pub fn beside(configurations: &[PathBuf], name: &str) -> Option<PathBuf> {
    // RabbitMQ's files stand in a directory `conf.d` beside it.
    let inside = |path: &PathBuf| path.is_dir() && !path.ends_with("conf.d");
    let directory = |path: &PathBuf| match inside(path) {
        true => Some(path.clone()),
        false => path.parent().map(Path::to_owned),
    };
    let mut candidates = configurations.iter().filter_map(directory);
    candidates.find_map(|directory| Some(directory.join(name)).filter(|path| path.is_file()))
}

/// The configuration files of a path: itself, or those of a directory that end in `.conf`, in the order of their names.
///
/// # Errors
/// `Read`: the directory can't be read.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.is_file() && file.extension().is_some_and(|ending| ending == "conf") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// One `key=value` of the command line, in the grammar of the file.
///
/// # Errors
/// `Syntax`, if it is anything but one setting.
pub fn command_line(text: &str) -> Result<Setting, ConfigError> {
    // Only the key is named: the value may be a password.
    let key_part = text.split('=').next().unwrap_or_default().trim();
    let origin = Origin::CommandLine(format!("-s {key_part}"));
    let mut lines = match syntax::parse(text) {
        Ok(lines) => lines,
        Err(e) => return Err(ConfigError::Syntax { origin, what: e.what }),
    };
    match (lines.pop(), lines.is_empty()) {
        (Some(line), true) => Ok(Setting {
            key: line.key,
            value: line.value,
            origin,
        }),
        _ => Err(ConfigError::Syntax {
            origin,
            what: "expected one `key=value`",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::of(
            variables
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        )
    }

    #[test]
    fn our_own_variable_for_the_file_goes_first() {
        let both = environment(&[("LEVERET_CONFIG_FILE", "/l"), ("RABBITMQ_CONFIG_FILE", "/r")]);
        assert_eq!(configurations(None, &both, (None, None)), [Path::new("/l")]);
        assert_eq!(
            configurations(Some(Path::new("/c")), &both, (None, None)),
            [Path::new("/c")]
        );
        assert_eq!(
            configurations(None, &environment(&[]), (None, None)),
            [] as [PathBuf; 0]
        );
    }

    #[test]
    fn the_advanced_file_is_named_or_beside_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let beside = dir.path().join("advanced.config");
        let nothing = &environment(&[]);
        let files = [
            dir.path().join("l.conf"),
            dir.path().to_owned(),
            dir.path().join("conf.d"),
        ];
        fs::create_dir(&files[2]).unwrap();
        assert_eq!(advanced_file(None, &files, nothing), None);
        fs::write(&beside, "[].").unwrap();
        for file in &files {
            let found = advanced_file(None, std::slice::from_ref(file), nothing);
            assert_eq!(found.as_ref(), Some(&beside), "{}", file.display());
        }
        assert_eq!(advanced_file(None, &[], nothing), None);
        let variable = &environment(&[("RABBITMQ_ADVANCED_CONFIG_FILE", "/x.config")]);
        assert_eq!(advanced_file(None, &files, variable), Some("/x.config".into()));
        let named = dir.path().join("advanced");
        assert_eq!(advanced_file(Some(&named), &[], variable), Some(beside));
    }

    #[test]
    fn rabbitmqs_folder_gives_what_is_there() {
        let etc = tempfile::tempdir().unwrap();
        assert_eq!(files_of_rabbitmq(etc.path()), (None, None));
        let (main, more) = (etc.path().join("rabbitmq.conf"), etc.path().join("conf.d"));
        fs::write(&main, "").unwrap();
        fs::create_dir(&more).unwrap();
        assert_eq!(files_of_rabbitmq(etc.path()), (Some(main), Some(more)));
    }

    #[test]
    fn a_directory_is_read_in_the_order_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["20-b.conf", "10-a.conf", "notes.txt"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let pattern = format!("{}/*.conf", dir.path().display());
        let named = configurations(
            None,
            &environment(&[("RABBITMQ_CONFIG_FILES", &pattern)]),
            (None, None),
        );
        let found = files(&named[0]).unwrap();
        assert_eq!(
            found,
            ["10-a.conf", "20-b.conf"].map(|name| dir.path().join(name))
        );
        assert_eq!(files(Path::new("/x.conf")).unwrap(), [Path::new("/x.conf")]);
    }

    #[test]
    fn a_setting_of_the_command_line_is_one_setting() {
        let setting = command_line("heartbeat=5").unwrap();
        assert_eq!(
            (setting.key.to_string().as_str(), setting.value.as_str()),
            ("heartbeat", "5")
        );
        for text in ["heartbeat", "", "a=1\nb=2", "# x"] {
            assert!(command_line(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_value_of_the_command_line_is_not_repeated_in_errors() {
        let error = command_line("default_pass='a' s3cret").unwrap_err().to_string();
        assert!(
            !error.contains("s3cret") && error.contains("-s default_pass"),
            "{error}"
        );
    }

    #[test]
    fn files_that_are_not_there_are_named() {
        let error = file(Path::new("/does/not/exist")).unwrap_err().to_string();
        assert!(error.starts_with("can't read /does/not/exist: "), "{error}");
    }
}
