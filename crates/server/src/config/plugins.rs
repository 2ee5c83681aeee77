//! RabbitMQ's file `enabled_plugins`, a list of names (`[rabbitmq_management, rabbitmq_prometheus].`), and
//! `RABBITMQ_ENABLED_PLUGINS`, which stands for it. What plugins add is built in here: the list says which of it is
//! shown as enabled, and whether HTTP is served.

use super::error::{ConfigError, Origin};
use super::sources::{missing, read};
use super::terms;
use super::{Config, Environment};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Parts of RabbitMQ's plugins that stand in lists although nobody asks for them by name: what they do is done here.
const SILENT: [&str; 5] = [
    "rabbitmq_management_agent",
    "rabbitmq_web_dispatch",
    "rabbitmq_peer_discovery_common",
    "rabbitmq_prelaunch",
    "rabbitmq_top",
];

/// The plugins that are enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugins {
    /// As they are listed.
    pub names: BTreeSet<String>,
    /// Where: a file and a line, or a variable.
    pub origin: Origin,
}

impl Plugins {
    /// What the environment names or its file, or the file that stands with the configuration (`beside`). `None` if
    /// nobody says anything, and a warning about a file that isn't there.
    ///
    /// # Errors
    /// It is no list of names.
    pub fn find(
        environment: &Environment,
        beside: Option<PathBuf>,
    ) -> Result<(Option<Self>, Option<String>), ConfigError> {
        const LIST: &str = "RABBITMQ_ENABLED_PLUGINS";
        const FILE: &str = "RABBITMQ_ENABLED_PLUGINS_FILE";
        if let Some(list) = environment.get(LIST).filter(|list| *list != "ALL") {
            let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
            let listed = Self {
                names: names.map(str::to_owned).collect(),
                origin: Origin::Environment(LIST.to_owned()),
            };
            return Ok((Some(listed), None));
        }
        if environment.get(LIST).is_some() {
            return Ok((None, None));
        }
        match environment.get(FILE).map(PathBuf::from) {
            Some(path) if !path.exists() => Ok((None, Some(missing(FILE, &path)))),
            Some(path) => Ok((Some(Self::file(&path)?), None)),
            None => Ok((beside.map(|path| Self::file(&path)).transpose()?, None)),
        }
    }

    fn file(path: &Path) -> Result<Self, ConfigError> {
        let text = read(path)?;
        let wrong = |line, what: &str| ConfigError::Query {
            origin: Origin::File(path.to_owned(), line),
            what: what.to_owned(),
        };
        const LIST: &str = "expected a list of plugins, such as [rabbitmq_management].";
        let term = terms::parse(&text).map_err(|mistake| wrong(mistake.place.line, &mistake.what))?;
        let list = term.list().ok_or_else(|| wrong(term.place.line, LIST))?;
        let names = list.iter().map(|it| {
            let name = it.atom().map(str::to_owned);
            name.ok_or_else(|| wrong(it.place.line, LIST))
        });
        Ok(Self {
            names: names.collect::<Result<_, _>>()?,
            origin: Origin::File(path.to_owned(), term.place.line),
        })
    }

    /// Closes the listeners of plugins that aren't listed, unless the configuration opens them by name. Returns what an
    /// operator should know.
    pub fn apply(self, config: &mut Config) -> Vec<String> {
        let mut warnings = Vec::new();
        let origin = &self.origin;
        let is_built_in = |name: &&str| {
            management::BUILT_IN_PLUGINS
                .iter()
                .any(|(known, _)| known == name)
        };
        let is_discovery = |name: &&str| name.starts_with("rabbitmq_peer_discovery_");
        let names = self.names.iter().map(String::as_str);
        let others = names.filter(|name| !is_built_in(name) && !SILENT.contains(name) && !is_discovery(name));
        let others: Vec<&str> = others.collect();
        if !others.is_empty() {
            let others = others.join(", ");
            warnings.push(format!(
                "{origin}: this version doesn't have these plugins: {others}"
            ));
        }
        for (name, page, listener) in [
            (
                "rabbitmq_management",
                "the HTTP API and the web UI are",
                &mut config.management.listener,
            ),
            (
                "rabbitmq_prometheus",
                "the metrics page is",
                &mut config.prometheus.listener,
            ),
        ] {
            let is_asked_for = listener.required || listener.tls_port.is_some();
            if !self.names.contains(name) && !is_asked_for && listener.enabled {
                listener.enabled = false;
                warnings.push(format!(
                    "{origin}: {name} is not enabled, so {page} not served over the network"
                ));
            }
        }
        config.plugins = Some(self);
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(text: &str, config: &mut Config) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("enabled_plugins");
        std::fs::write(&path, text).unwrap();
        let (found, warning) = Plugins::find(&Environment::default(), Some(path)).unwrap();
        assert_eq!(warning, None);
        let cut = format!("{}/", dir.path().display());
        let warnings = found.unwrap().apply(config);
        warnings.into_iter().map(|line| line.replace(&cut, "")).collect()
    }

    #[test]
    fn the_list_says_whether_http_is_served() {
        let mut config = Config::default();
        assert_eq!(
            applied("[rabbitmq_management,rabbitmq_prometheus].", &mut config),
            [] as [&str; 0]
        );
        assert!(config.management.listener.enabled && config.prometheus.listener.enabled);
        assert_eq!(
            applied(
                "% comment\n[rabbitmq_management_agent, rabbitmq_prometheus].\n",
                &mut config
            ),
            [
                "enabled_plugins:2: rabbitmq_management is not enabled, so the HTTP API and the web UI are not served over the network"
            ]
        );
        assert!(!config.management.listener.enabled && config.prometheus.listener.enabled);
        let mut config = Config::default();
        config.management.listener.required = true;
        assert_eq!(applied("[].", &mut config).len(), 1);
        assert!(config.management.listener.enabled && !config.prometheus.listener.enabled);
    }

    #[test]
    fn plugins_that_are_not_here_are_named_together() {
        let mut config = Config::default();
        let text = "[rabbitmq_management, rabbitmq_prometheus, rabbitmq_shovel, rabbitmq_mqtt, rabbitmq_peer_discovery_k8s].";
        assert_eq!(
            applied(text, &mut config),
            ["enabled_plugins:1: this version doesn't have these plugins: rabbitmq_mqtt, rabbitmq_shovel"]
        );
        assert!(config.plugins.unwrap().names.contains("rabbitmq_shovel"));
    }

    #[test]
    fn the_environment_may_list_them_itself() {
        let of = |value: &str| {
            let variables = [("RABBITMQ_ENABLED_PLUGINS".to_owned(), value.to_owned())];
            Plugins::find(&Environment::of(variables), None).unwrap().0
        };
        let listed = of("rabbitmq_management, rabbitmq_mqtt").unwrap();
        assert_eq!(
            listed.names.into_iter().collect::<Vec<_>>(),
            ["rabbitmq_management", "rabbitmq_mqtt"]
        );
        assert_eq!(of("ALL"), None);
        let variables = [(
            "RABBITMQ_ENABLED_PLUGINS_FILE".to_owned(),
            "/nowhere/x".to_owned(),
        )];
        let (listed, warning) = Plugins::find(&Environment::of(variables), None).unwrap();
        assert!(listed.is_none() && warning.unwrap().contains("/nowhere/x"));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("enabled_plugins");
        for text in ["rabbitmq_management.", "[\"a\"].", "[rabbitmq_management"] {
            std::fs::write(&path, text).unwrap();
            let error = Plugins::find(&Environment::default(), Some(path.clone())).unwrap_err();
            assert!(error.to_string().contains("enabled_plugins:1: "), "{error}");
        }
    }
}
