//! Values that a passphrase guards: `encrypted:BASE64`, and `{encrypted, <<"BASE64">>}` in `advanced.config`. The
//! passphrase and the scheme are settings, too: `config_entry_decoder.*`, which RabbitMQ takes in `advanced.config`.

use super::error::ConfigError;
use super::rules::{Checked, number};
use super::{Config, Secret, Setting};
use ctl::encoded::{CIPHERS, HASHES, Scheme};
use std::borrow::Cow;
use std::fs;

/// What a value begins with.
const MARK: &str = "encrypted:";

/// True if the value is guarded, so that what it says is not to be shown.
pub fn is_guarded(setting: &Setting) -> bool {
    setting.value.starts_with(MARK)
}

/// `config_entry_decoder.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoder {
    pub passphrase: Option<Secret>,
    pub scheme: Scheme,
}

impl Decoder {
    /// The one that these settings describe; what is wrong with them is found when they are applied.
    pub fn of(settings: &[Setting]) -> Self {
        let mut config = Config::default();
        for setting in settings {
            let _ = match setting.key.to_string().as_str() {
                "config_entry_decoder.passphrase" => passphrase(&mut config, setting),
                "config_entry_decoder.passphrase_file" => passphrase_file(&mut config, setting),
                "config_entry_decoder.cipher" => cipher(&mut config, setting),
                "config_entry_decoder.hash" => hash(&mut config, setting),
                "config_entry_decoder.iterations" => iterations(&mut config, setting),
                _ => Ok(()),
            };
        }
        config.decoder
    }

    /// The setting with its value in the clear.
    ///
    /// # Errors
    /// The value can't be decrypted; it is not repeated.
    pub fn plain<'a>(&self, setting: &'a Setting) -> Result<Cow<'a, Setting>, ConfigError> {
        let Some(text) = setting.value.strip_prefix(MARK) else {
            return Ok(Cow::Borrowed(setting));
        };
        let wrong = |what: &str| ConfigError::Query {
            origin: setting.origin.clone(),
            what: format!("the value of {} is encrypted: {what}", setting.key),
        };
        let Some(passphrase) = &self.passphrase else {
            return Err(wrong(
                "config_entry_decoder.passphrase or .passphrase_file must be set",
            ));
        };
        let found = self.scheme.decode(text, passphrase.0.as_bytes());
        let found = found.and_then(|secret| String::from_utf8(secret.bytes().to_vec()).ok());
        let value = found.ok_or_else(|| {
            wrong("config_entry_decoder has another passphrase, cipher, hash or count of iterations")
        })?;
        Ok(Cow::Owned(Setting {
            value,
            ..setting.clone()
        }))
    }
}

pub fn passphrase(config: &mut Config, setting: &Setting) -> Checked {
    if setting.value.is_empty() || setting.value == "prompt" {
        return Err("a passphrase (nobody is asked for one: set .passphrase_file)");
    }
    config.decoder.passphrase = Some(Secret(setting.value.clone()));
    Ok(())
}

pub fn passphrase_file(config: &mut Config, setting: &Setting) -> Checked {
    let text = fs::read_to_string(&setting.value).map_err(|_| "the path of a file that can be read")?;
    config.decoder.passphrase = Some(Secret(text.trim_end_matches(['\r', '\n']).to_owned()));
    Ok(())
}

pub fn cipher(config: &mut Config, setting: &Setting) -> Checked {
    if !CIPHERS.contains(&setting.value.as_str()) {
        return Err("aes_256_cbc, aes_128_cbc");
    }
    config.decoder.scheme.cipher.clone_from(&setting.value);
    Ok(())
}

pub fn hash(config: &mut Config, setting: &Setting) -> Checked {
    if !HASHES.contains(&setting.value.as_str()) {
        return Err("sha512, sha384, sha256, sha");
    }
    config.decoder.scheme.hash.clone_from(&setting.value);
    Ok(())
}

pub fn iterations(config: &mut Config, setting: &Setting) -> Checked {
    config.decoder.scheme.iterations = number(setting, 1, 10_000_000).ok_or("a number from 1 to 10000000")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{load, sources};
    use super::*;
    use std::path::Path;

    /// `"s3cret"`, by RabbitMQ's `rabbitmqctl encode` with the passphrase `bunnies`.
    const VALUE: &str = "encrypted:JzvMNmrsNOnPdqnUyB40MGoq/SKvqv55USLGh4a92ayb8pvTeBwAxehXdpzKqwan";

    fn loaded(text: &str) -> Result<super::super::Loaded, String> {
        let settings = sources::text_of_file(text, Path::new("l.conf")).unwrap();
        load(settings).map_err(|errors| errors[0].to_string())
    }

    #[test]
    fn guarded_values_take_effect_and_are_not_shown() {
        let text = format!(
            "config_entry_decoder.passphrase = bunnies\ndefault_pass = {VALUE}\ncluster_name = {VALUE}"
        );
        let loaded = loaded(&text).unwrap();
        assert_eq!(loaded.config.defaults.password, "s3cret");
        let rows = super::super::in_force(&loaded.config, &loaded.settings);
        assert!(!format!("{rows:?}").contains("s3cret") && !format!("{rows:?}").contains("bunnies"));
    }

    #[test]
    fn what_cannot_be_decrypted_ends_the_start() {
        let missing = loaded(&format!("default_pass = {VALUE}")).unwrap_err();
        assert!(
            missing.starts_with(
                "l.conf:1: the value of default_pass is encrypted: config_entry_decoder.passphrase"
            ),
            "{missing}"
        );
        let text = format!("config_entry_decoder.passphrase = hares\ndefault_pass = {VALUE}");
        assert!(loaded(&text).unwrap_err().contains("another passphrase"));
    }

    #[test]
    fn the_passphrase_may_stand_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passphrase");
        fs::write(&path, "bunnies\n").unwrap();
        let text = format!(
            "default_pass = {VALUE}\nconfig_entry_decoder.passphrase_file = {}",
            path.display()
        );
        assert_eq!(loaded(&text).unwrap().config.defaults.password, "s3cret");
    }
}
