//! Files of definitions that are imported before the listeners open: `load_definitions` and `definitions.*`.

use crate::config::{Definitions, Hashing};
use broker::Broker;
use management::ImportRequest;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The keys that name a source.
const FILE: &str = "load_definitions";
const LOCAL: &str = "definitions.local.path";
const URL: &str = "definitions.https.url";
/// A document of a server is no longer than this, in bytes.
const FETCHED_MOST: u64 = 256 * 1024 * 1024;

/// A file, and the key that led to it.
struct Source {
    key: &'static str,
    path: PathBuf,
}

/// Imports a file, or all files of a directory in the order of their names (RabbitMQ's way). What exists stays as it is, so this
/// may happen at every start. If it is to be skipped when it is what was imported last, its digest is kept with what it made,
/// and looked at first: what was changed or taken away since then stays so. In a cluster it always is.
///
/// # Errors
/// A file can't be read, or objects in it are refused; the text names them. Nothing was changed, and the node is not to
/// start then.
pub fn load(broker: &Broker, definitions: &Definitions) -> Result<(), String> {
    let mut texts = Vec::new();
    for source in sources(definitions)? {
        let text = match &definitions.url {
            Some(url) if source.key == URL => identity::fetch(&definitions.trust, url, FETCHED_MOST)
                .map_err(|error| format!("{URL}: {error}"))?,
            _ => fs::read(&source.path).map_err(|error| unreadable(source.key, &source.path, &error))?,
        };
        texts.push((source, text));
    }
    let by = broker.administrator(broker::THE_NODE);
    let documents: Vec<&[u8]> = texts.iter().map(|(_, text)| text.as_slice()).collect();
    let asked = ImportRequest {
        options: definitions.options,
        ..ImportRequest::default()
    };
    let is_once = definitions.skip_if_unchanged || broker.shared_catalog().is_some();
    let imported = match is_once {
        true => management::import_once(&by, &documents, asked, &mark(definitions.hashing, &texts)),
        false => management::import(&by, &documents, asked).map(Some),
    };
    let reports = imported.map_err(|unimported| {
        let source = unimported.place().and_then(|place| texts.get(place));
        let source = source.map(|(Source { key, path }, _)| format!("{key}: {}: ", path.display()));
        format!("{}{unimported}", source.unwrap_or_default())
    })?;
    let Some(reports) = reports else {
        tracing::info!(
            area = "boot",
            "the definitions are those that were imported last; nothing is imported"
        );
        return Ok(());
    };
    for ((Source { path, .. }, _), report) in texts.iter().zip(reports) {
        for note in report.notes() {
            tracing::warn!(area = "boot", "definitions of {}: {note}", path.display());
        }
        tracing::info!(area = "boot", "definitions of {} are imported", path.display());
    }
    Ok(())
}

/// Looks whether the sources are there.
///
/// # Errors
/// One is not, or can't be read; or a backend is named, but no path.
pub fn readable(definitions: &Definitions) -> Result<(), String> {
    let on_disk = |source: &Source| source.key != URL;
    for Source { key, path } in sources(definitions)?.into_iter().filter(on_disk) {
        fs::metadata(&path).map_err(|error| unreadable(key, &path, &error))?;
    }
    Ok(())
}

fn sources(definitions: &Definitions) -> Result<Vec<Source>, String> {
    if definitions.is_local && definitions.local.is_none() {
        return Err(format!(
            "definitions.import_backend = local_filesystem needs {LOCAL}: a file, or a directory of files *.json"
        ));
    }
    if definitions.is_remote && definitions.url.is_none() {
        return Err(format!("definitions.import_backend = https needs {URL}"));
    }
    let mut sources = Vec::new();
    if definitions.url.is_some() {
        // The address may hold a password, and its name is shown.
        let path = PathBuf::from("the server's document");
        sources.push(Source { key: URL, path });
    }
    if let Some(path) = &definitions.file {
        sources.extend(files(FILE, path, |_| true)?);
    }
    if let Some(path) = definitions
        .local
        .as_ref()
        .filter(|path| definitions.file.as_ref() != Some(path))
    {
        let is_json = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
        sources.extend(files(LOCAL, path, is_json)?);
    }
    Ok(sources)
}

/// The file, or those of the directory that are wanted, in the order of their names.
fn files(key: &'static str, path: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<Source>, String> {
    let source = |path| Source { key, path };
    if !path.is_dir() {
        return Ok(vec![source(path.to_owned())]);
    }
    let entries = fs::read_dir(path).map_err(|error| unreadable(key, path, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(|error| unreadable(key, path, &error))?.path();
        if file.is_file() && wanted(&file) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files.into_iter().map(source).collect())
}

fn unreadable(key: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{key}: {} cannot be read: {error}", path.display())
}

/// What tells these files from others: the algorithm and the digest of their contents, each with its length before it.
fn mark(hashing: Hashing, texts: &[(Source, Vec<u8>)]) -> String {
    let digest = match hashing {
        Hashing::Sha224 => digest::<Sha224>(texts),
        Hashing::Sha256 => digest::<Sha256>(texts),
        Hashing::Sha384 => digest::<Sha384>(texts),
        Hashing::Sha512 => digest::<Sha512>(texts),
    };
    let mut mark = format!("{hashing}:");
    for byte in digest {
        // Text takes all that is written into it.
        let _ = write!(mark, "{byte:02x}");
    }
    mark
}

fn digest<D: Digest>(texts: &[(Source, Vec<u8>)]) -> Vec<u8> {
    let mut digest = D::new();
    for (_, text) in texts {
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    }
    digest.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(data: &Path) -> std::sync::Arc<Broker> {
        Broker::open(broker::Options {
            create_defaults: false,
            ..broker::Options::new(data)
        })
        .unwrap()
    }

    fn of(path: &Path) -> Definitions {
        Definitions {
            file: Some(path.to_owned()),
            ..Definitions::default()
        }
    }

    #[test]
    fn what_was_imported_last_is_not_imported_again_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (data, file) = (dir.path().join("data"), dir.path().join("defs.json"));
        let text = r#"{"vhosts": [{"name": "shop"}], "users": [{"name": "jane", "password": "x", "tags": ""}],
            "queues": [{"vhost": "shop", "name": "q", "durable": true}]}"#;
        fs::write(&file, text).unwrap();
        let mut definitions = Definitions {
            skip_if_unchanged: true,
            ..of(&file)
        };
        let has_jane = |data: &Path, definitions: &Definitions, is_deleted: bool| {
            let broker = open(data);
            load(&broker, definitions).unwrap();
            let found = broker.view().user("jane").is_some();
            if is_deleted {
                broker
                    .administrator(broker::THE_NODE)
                    .delete_user("jane")
                    .unwrap();
            }
            broker.close();
            found
        };
        assert!(has_jane(&data, &definitions, true), "the first time");
        assert!(!has_jane(&data, &definitions, false), "the same file");
        definitions.hashing = Hashing::Sha512;
        assert!(has_jane(&data, &definitions, true), "another algorithm");
        assert!(
            !has_jane(&data, &definitions, false),
            "the same file and algorithm"
        );
        fs::write(&file, format!("{text}\n")).unwrap();
        assert!(has_jane(&data, &definitions, true), "another file");
        definitions.skip_if_unchanged = false;
        assert!(has_jane(&data, &definitions, false), "nothing is skipped");
    }

    #[test]
    fn an_import_that_failed_leaves_no_mark() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("defs.json");
        fs::write(&file, r#"{"queues": [{"vhost": "nope", "name": "q"}]}"#).unwrap();
        let broker = open(&dir.path().join("data"));
        let definitions = Definitions {
            skip_if_unchanged: true,
            ..of(&file)
        };
        for _ in 0..2 {
            assert!(load(&broker, &definitions).unwrap_err().contains("nope"));
        }
        broker.close();
    }

    #[test]
    fn a_refused_file_leaves_nothing_behind_unless_what_is_not_built_is_to_be_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let defined = dir.path().join("defined");
        fs::create_dir_all(&defined).unwrap();
        fs::write(
            defined.join("1.json"),
            r#"{"vhosts": [{"name": "shop"}], "users": [{"name": "jane", "password": "x", "tags": ""}]}"#,
        )
        .unwrap();
        fs::write(
            defined.join("2.json"),
            r#"{"queues": [{"vhost": "shop", "name": "s", "type": "mqtt"}, {"vhost": "shop", "name": "q", "type": "quorum"}]}"#,
        )
        .unwrap();
        let broker = open(&dir.path().join("data"));
        let mut definitions = of(&defined);
        let error = load(&broker, &definitions).unwrap_err();
        assert!(
            error.contains("2.json: ") && error.contains("'s'") && error.contains("'q'"),
            "{error}"
        );
        assert!(broker.view().vhost("shop").is_none() && broker.view().user("jane").is_none());
        definitions.options.skip_unsupported = true;
        definitions.options.quorum_as_classic = true;
        load(&broker, &definitions).unwrap();
        let view = broker.view();
        assert!(
            view.queue("shop", "s").is_none()
                && view.queue("shop", "q").is_some_and(|queue| queue.is_durable())
        );
        broker.close();
    }

    #[test]
    fn of_a_local_directory_the_json_files_are_imported() {
        let dir = tempfile::tempdir().unwrap();
        let defined = dir.path().join("defined");
        fs::create_dir_all(&defined).unwrap();
        fs::write(
            defined.join("2.json"),
            r#"{"queues": [{"vhost": "shop", "name": "q"}]}"#,
        )
        .unwrap();
        fs::write(defined.join("1.json"), r#"{"vhosts": [{"name": "shop"}]}"#).unwrap();
        fs::write(defined.join("0.txt"), "no definitions").unwrap();
        let broker = open(&dir.path().join("data"));
        let mut definitions = Definitions {
            is_local: true,
            ..Definitions::default()
        };
        assert!(
            readable(&definitions)
                .unwrap_err()
                .contains("needs definitions.local.path")
        );
        definitions.local = Some(dir.path().join("none"));
        assert!(
            readable(&definitions)
                .unwrap_err()
                .starts_with("definitions.local.path: ")
        );
        definitions.local = Some(defined);
        readable(&definitions).unwrap();
        load(&broker, &definitions).unwrap();
        assert!(broker.view().queue("shop", "q").is_some());
        broker.close();
    }

    #[test]
    fn files_of_a_directory_are_imported_in_order_and_mistakes_name_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let (data, defined) = (dir.path().join("data"), dir.path().join("defined"));
        fs::create_dir_all(&data).unwrap();
        fs::create_dir_all(&defined).unwrap();
        let broker = Broker::open(broker::Options {
            create_defaults: false,
            ..broker::Options::new(&data)
        })
        .unwrap();
        fs::write(
            defined.join("2.json"),
            r#"{"queues": [{"vhost": "shop", "name": "q", "durable": true}]}"#,
        )
        .unwrap();
        fs::write(
            defined.join("1.json"),
            r#"{"vhosts": [{"name": "shop"}], "users": [{"name": "jane", "password": "x", "tags": ""}]}"#,
        )
        .unwrap();
        load(&broker, &of(&defined)).unwrap();
        broker.create_defaults().unwrap();
        let view = broker.view();
        assert!(
            view.queue("shop", "q").is_some() && view.user("jane").is_some() && view.user("guest").is_none()
        );
        fs::write(
            defined.join("3.json"),
            r#"{"queues": [{"vhost": "nope", "name": "q"}]}"#,
        )
        .unwrap();
        let error = load(&broker, &of(&defined)).unwrap_err();
        assert!(
            error.contains("3.json: queues: 'q' in virtual host 'nope': "),
            "{error}"
        );
        assert!(
            load(&broker, &of(&dir.path().join("none")))
                .unwrap_err()
                .contains("cannot be read")
        );
        broker.close();
    }
}
