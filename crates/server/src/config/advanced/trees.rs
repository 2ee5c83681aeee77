//! Values of `advanced.config` that are more than a list of settings: options of sockets, the log, the nodes of a cluster.

use super::super::terms::{Mistake, Term};
use super::{Reader, pair, simple};

const LIST: &str = "expected a list";
const PAIR: &str = "expected {KEY, VALUE}";

impl Reader<'_> {
    /// `[binary, {backlog, 128}, {linger, {true, 0}}]`: what stands there without a value, or asks for what is always
    /// so, is left out.
    pub(super) fn sockets(&mut self, key: &str, value: &Term) -> Result<(), Mistake> {
        self.found.replaced.push(key.to_owned());
        for term in value.list().ok_or_else(|| value.mistake(LIST))? {
            if term.atom().is_some() {
                continue;
            }
            let (name, value) = pair(term, PAIR)?;
            match (name, value.tuple()) {
                ("packet" | "reuseaddr" | "active" | "mode", _) => {}
                ("linger", Some([on, timeout])) => {
                    self.put(&format!("{key}.linger.on"), simple(on)?, on)?;
                    self.put(&format!("{key}.linger.timeout"), simple(timeout)?, timeout)?;
                }
                (name, _) => self.put(&format!("{key}.{name}"), simple(value)?, value)?,
            }
        }
        Ok(())
    }

    /// `[{file, [{level, info}]}, {console, [{enabled, true}]}, {categories, [{queue, [{level, debug}]}]}]`.
    pub(super) fn log(&mut self, value: &Term) -> Result<(), Mistake> {
        for term in value.list().ok_or_else(|| value.mistake(LIST))? {
            let (output, settings) = pair(term, PAIR)?;
            for term in settings.list().ok_or_else(|| settings.mistake(LIST))? {
                let (name, value) = pair(term, PAIR)?;
                match (output, name) {
                    ("categories", category) => {
                        for term in value.list().ok_or_else(|| value.mistake(LIST))? {
                            let (name, value) = pair(term, PAIR)?;
                            self.one(&format!("log.{category}.{name}"), value)?;
                        }
                    }
                    ("file", "file") => self.one("log.file", value)?,
                    (output, "enabled") => self.one(&format!("log.{output}"), value)?,
                    ("file", "date" | "size" | "count") => {
                        self.one(&format!("log.file.rotation.{name}"), value)?;
                    }
                    (output, name) => self.one(&format!("log.{output}.{name}"), value)?,
                }
            }
        }
        Ok(())
    }

    /// `[{connection, error}, {channel, warning}]`.
    pub(super) fn log_levels(&mut self, value: &Term) -> Result<(), Mistake> {
        for term in value.list().ok_or_else(|| value.mistake(LIST))? {
            let (category, level) = pair(term, PAIR)?;
            self.one(&format!("log.{category}.level"), level)?;
        }
        Ok(())
    }

    /// `{[rabbit@a, rabbit@b], disc}`, or the list alone.
    pub(super) fn nodes(&mut self, value: &Term) -> Result<(), Mistake> {
        let nodes = match value.tuple() {
            Some([nodes, _]) => nodes,
            _ => value,
        };
        self.list("cluster_formation.classic_config.nodes", nodes)
    }

    /// `[{passphrase, <<"x">>}, {cipher, aes_256_cbc}]`; the passphrase may be `{file, "path"}` or `prompt`.
    pub(super) fn decoder(&mut self, value: &Term) -> Result<(), Mistake> {
        for term in value.list().ok_or_else(|| value.mistake(LIST))? {
            let (name, value) = pair(term, PAIR)?;
            match value.tuple() {
                Some([kind, path]) if kind.atom() == Some("file") => {
                    self.one("config_entry_decoder.passphrase_file", path)?;
                }
                _ => self.one(&format!("config_entry_decoder.{name}"), value)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::text_of_file;
    use std::path::Path;

    fn read(text: &str) -> (Vec<String>, usize) {
        let advanced = text_of_file(&format!("[{text}]."), Path::new("a.config")).unwrap();
        let shown = advanced
            .settings
            .iter()
            .map(|it| format!("{} = {}", it.key, it.value));
        (shown.collect(), advanced.warnings.len())
    }

    #[test]
    fn what_production_files_of_rabbitmq_say_is_understood() {
        for (text, settings) in [
            (
                "{rabbit, [{tcp_listen_options, [binary, {packet, raw}, {backlog, 512}, {nodelay, true}, {linger, {true, 0}}]}]}",
                &[
                    "tcp_listen_options.backlog = 512",
                    "tcp_listen_options.nodelay = true",
                    "tcp_listen_options.linger.on = true",
                    "tcp_listen_options.linger.timeout = 0",
                ][..],
            ),
            (
                "{rabbit, [{log, [{file, [{file, \"r.log\"}, {level, warning}, {size, 1024}]}, {console, [{enabled, false}]}, {categories, [{queue, [{level, debug}]}]}]}]}",
                &[
                    "log.file = r.log",
                    "log.file.level = warning",
                    "log.file.rotation.size = 1024",
                    "log.console = false",
                    "log.queue.level = debug",
                ],
            ),
            (
                "{rabbit, [{log_levels, [{connection, error}]}]}",
                &["log.connection.level = error"],
            ),
            (
                "{rabbit, [{cluster_nodes, {['rabbit@a', 'rabbit@b'], disc}}]}",
                &[
                    "cluster_formation.classic_config.nodes.1 = rabbit@a",
                    "cluster_formation.classic_config.nodes.2 = rabbit@b",
                ],
            ),
            (
                "{rabbit, [{config_entry_decoder, [{passphrase, {file, \"/p\"}}, {cipher, aes_256_cbc}]}, {default_pass, {encrypted, <<\"AAAA\">>}}]}",
                &[
                    "config_entry_decoder.passphrase_file = /p",
                    "config_entry_decoder.cipher = aes_256_cbc",
                    "default_pass = encrypted:AAAA",
                ],
            ),
            (
                "{rabbitmq_management, [{listener, [{port, 15671}, {ssl, true}, {ssl_opts, [{certfile, \"c.pem\"}, {versions, ['tlsv1.2']}]}]}, {rates_mode, basic}]}",
                &[
                    "management.listener.port = 15671",
                    "management.listener.ssl = true",
                    "management.listener.ssl_opts.certfile = c.pem",
                    "management.listener.ssl_opts.versions.1 = tlsv1.2",
                    "management.rates_mode = basic",
                ],
            ),
            (
                "{rabbit, [{collect_statistics_interval, 10000}, {vm_memory_high_watermark_paging_ratio, 0.75}]}",
                &[
                    "collect_statistics_interval = 10000",
                    "vm_memory_high_watermark_paging_ratio = 0.75",
                ],
            ),
        ] {
            assert_eq!(
                read(text),
                (settings.iter().map(|it| (*it).to_owned()).collect(), 0),
                "{text}"
            );
        }
    }

    #[test]
    fn other_applications_are_named_in_a_warning() {
        let (settings, warnings) = read(
            "{kernel, [{net_ticktime, 120}, {inet_dist_listen_min, 25672}]}, {rabbitmq_shovel, [{shovels, []}]}, \
             {rabbit, [{server_properties, []}, {channel_operation_timeout, 15000}]}",
        );
        assert_eq!((settings, warnings), (vec!["net_ticktime = 120".to_owned()], 4));
    }
}
