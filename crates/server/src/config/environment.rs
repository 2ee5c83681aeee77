//! The environment: what its variables and `rabbitmq-env.conf`, which stands for them, say about the node.
//!
//! Each variable of RabbitMQ takes effect, or a warning says that it has none, or the node does not start: none is passed over.

mod arguments;
mod env_file;
mod known;
mod logs;

use super::advanced::Advanced;
use super::error::{ConfigError, Origin};
use super::sources::{Setting, read};
use super::syntax::Key;
use env_file::EnvLine;
use known::{KNOWN, Means};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// The variables that are ours to understand: those whose names begin with `RABBITMQ_` or `LEVERET_`, and those by which pods
/// find each other. Empty ones count as not set.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, Variable>,
    /// About lines of `rabbitmq-env.conf`.
    warnings: Vec<String>,
}

#[derive(Clone, Debug)]
struct Variable {
    value: String,
    origin: Origin,
}

/// What an environment means.
#[derive(Debug, Default)]
pub struct Said {
    /// Settings, the later ones counting.
    pub settings: Vec<Setting>,
    /// What the options of Erlang's machine set: they count as `advanced.config` does.
    pub arguments: Advanced,
    /// `RABBITMQ_NODE_IP_ADDRESS`, and where it is said.
    pub address: Option<(String, Origin)>,
    pub warnings: Vec<String>,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        let text = |it: OsString| it.to_string_lossy().into_owned();
        Self::of(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
    }

    /// These variables.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |name: &str| {
            name.starts_with("RABBITMQ_") || name.starts_with("LEVERET_") || known::is_known(name)
        };
        let variables = variables
            .into_iter()
            .filter(|(name, value)| ours(name) && !value.is_empty());
        let with_origin = |(name, value): (String, String)| {
            let origin = Origin::Environment(name.clone());
            (name, Variable { value, origin })
        };
        Self {
            variables: variables.map(with_origin).collect(),
            warnings: Vec::new(),
        }
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|it| it.value.as_str())
    }

    /// The value of the first of these variables that is set.
    pub fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Joins what a file `rabbitmq-env.conf` assigns; variables that are set already count more. Names may lack `RABBITMQ_`.
    ///
    /// # Errors
    /// It can't be read, or an assignment can't be understood without a shell.
    pub fn join_file(&mut self, path: &Path) -> Result<(), Vec<ConfigError>> {
        let text = read(path).map_err(|error| vec![error])?;
        let mut errors = Vec::new();
        for (line, number) in env_file::lines(&text, |name| std::env::var(name).ok()) {
            let origin = Origin::File(path.to_owned(), number);
            match line {
                EnvLine::Assignment(name, value) => self.assign(name, value, origin),
                EnvLine::NeedsShell(Some(name)) if full_name(&name).is_some() => errors.push(ConfigError::Query {
                    origin,
                    what: format!("the value of {name} needs a shell, and none is run: write the value itself"),
                }),
                EnvLine::NeedsShell(_) => self.warnings.push(format!(
                    "{origin}: the line has no effect: only assignments are read here, such as NODENAME=rabbit@host"
                )),
            }
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(errors),
        }
    }

    fn assign(&mut self, name: String, value: String, origin: Origin) {
        let Some(name) = full_name(&name) else {
            let text = format!("{origin}: {name} is not a variable of RabbitMQ; the line has no effect");
            self.warnings.push(text);
            return;
        };
        let is_set = |it: &Variable| matches!(it.origin, Origin::Environment(_));
        if !value.is_empty() && !self.variables.get(&name).is_some_and(is_set) {
            self.variables.insert(name, Variable { value, origin });
        }
    }

    /// What all variables mean.
    ///
    /// # Errors
    /// Values that can't be understood, and variables that must not be passed over.
    pub fn said(&self) -> Result<Said, Vec<ConfigError>> {
        let mut said = Said {
            warnings: self.warnings.clone(),
            ..Said::default()
        };
        let mut errors = Vec::new();
        let mut without_effect: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, means) in KNOWN {
            let Some(variable) = self.variables.get(*name) else {
                continue;
            };
            match means {
                Means::Nothing(why) => match without_effect.iter_mut().find(|(known, _)| known == why) {
                    Some((_, names)) => names.push(name),
                    None => without_effect.push((why, vec![name])),
                },
                means => errors.extend(said.add(name, means, variable).err()),
            }
        }
        for (why, names) in without_effect {
            let (has, variables) = match names.len() {
                1 => ("has", "environment variable"),
                _ => ("have", "environment variables"),
            };
            let names = names.join(", ");
            said.warnings
                .push(format!("{variables} {names} {has} no effect: {why}"));
        }
        if let Some(ours) = self.get("LEVERET_DATA_DIR") {
            let others = ["RABBITMQ_MNESIA_DIR", "RABBITMQ_MNESIA_BASE"];
            let others = others
                .into_iter()
                .filter(|name| self.get(name).is_some_and(|it| it != ours));
            let warning =
                |name| format!("environment variable {name} has no effect: LEVERET_DATA_DIR counts");
            said.warnings.extend(others.map(warning));
        }
        said.warnings.extend(self.unknown());
        match errors.is_empty() {
            true => Ok(said),
            false => Err(errors),
        }
    }

    /// What is said about variables that nobody knows.
    fn unknown(&self) -> impl Iterator<Item = String> {
        self.variables.iter().filter_map(|(name, variable)| {
            if known::is_known(name) || known::is_of_an_orchestrator(name, &variable.value) {
                return None;
            }
            let origin = &variable.origin;
            match known::nearest(name) {
                Some(nearest) => Some(format!(
                    "{origin}: no such variable is known, and it has no effect; did you mean {nearest}?"
                )),
                // Some variable of the operator's own tools.
                None if name.starts_with("LEVERET_") => None,
                None => Some(format!(
                    "{origin}: no such variable is known, and it has no effect"
                )),
            }
        })
    }
}

impl Said {
    fn add(&mut self, name: &str, means: &Means, variable: &Variable) -> Result<(), ConfigError> {
        let value = &variable.value;
        match means {
            Means::Sets(key) => self.set(key, value, variable),
            Means::Contents(key) => {
                let text = read(Path::new(value))?;
                self.set(key, text.trim_end_matches(['\r', '\n']), variable);
            }
            Means::Address => self.address = Some((value.clone(), variable.origin.clone())),
            Means::LogTarget => logs::target(value, |key, value| self.set(key, value, variable)),
            Means::LogLevels => {
                let wrong = logs::levels(value, |key, value| self.set(key, value, variable));
                let warning =
                    |word| format!("{}: '{word}' is neither a level nor a category", variable.origin);
                self.warnings.extend(wrong.into_iter().map(warning));
            }
            Means::Watermark => {
                let (key, value) = known::watermark(value);
                self.set(key, &value, variable);
            }
            Means::Flag(key) => self.set(key, &known::is_yes(value).to_string(), variable),
            Means::Arguments => {
                let (settings, warnings) = arguments::settings(name, value, &variable.origin)?;
                self.warnings.extend(warnings);
                self.arguments.join(settings);
            }
            Means::Refused(why) => {
                return Err(ConfigError::Query {
                    origin: variable.origin.clone(),
                    what: (*why).to_owned(),
                });
            }
            Means::Elsewhere | Means::Nothing(_) => {}
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str, variable: &Variable) {
        let value = value.to_owned();
        let origin = variable.origin.clone();
        let setting = Key::parse(key).map(|key| Setting { key, value, origin });
        self.settings.extend(setting);
    }

    /// Puts these settings behind the others. An address holds for each plain listener that names none, and so also for
    /// the default one.
    pub fn put_behind(self, settings: &mut Vec<Setting>) {
        self.arguments.put_behind(settings);
        settings.extend(self.settings);
        let Some((address, origin)) = self.address.filter(|(address, _)| address != "auto") else {
            return;
        };
        let is_plain = |setting: &Setting| matches!(setting.key.segments(), [a, b, ..] if a == "listeners" && b == "tcp");
        if !settings.iter().any(is_plain) {
            settings.extend(Key::parse("listeners.tcp.default").map(|key| Setting {
                key,
                value: "5672".to_owned(),
                origin: origin.clone(),
            }));
        }
        let is_port = |setting: &&mut Setting| setting.value.bytes().all(|byte| byte.is_ascii_digit());
        for setting in settings.iter_mut().filter(|it| is_plain(it)).filter(is_port) {
            setting.value = format!("{address}:{}", setting.value);
            setting.origin = origin.clone();
        }
    }
}

/// The name of a variable as RabbitMQ knows it, of what stands in `rabbitmq-env.conf`.
fn full_name(name: &str) -> Option<String> {
    if name.starts_with("RABBITMQ_") {
        return Some(name.to_owned());
    }
    let full = format!("RABBITMQ_{name}");
    known::is_known(&full).then_some(full)
}

#[cfg(test)]
mod tests;
