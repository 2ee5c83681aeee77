//! `definitions.*`: what is imported at the start besides `load_definitions`, and when it is not.

use super::rules::{Checked, boolean};
use super::rules_backends::address;
use super::{Config, Setting};
use management::ImportOptions;
use std::fmt::{self, Display};
use std::path::PathBuf;

/// Where definitions come from, and when they are imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// `load_definitions`: a file of definitions, or a directory of such files, that is imported at every start.
    pub file: Option<PathBuf>,
    /// `definitions.import_backend = local_filesystem`: there is to be a [`Definitions::local`].
    pub is_local: bool,
    /// `definitions.import_backend = https`: there is to be a [`Definitions::url`].
    pub is_remote: bool,
    /// `definitions.https.url`: a document of a server.
    pub url: Option<String>,
    /// `definitions.tls.*`: which server that is.
    pub trust: identity::Trust,
    /// `definitions.local.path`: a file of definitions, or a directory whose files `*.json` are imported.
    pub local: Option<PathBuf>,
    /// `definitions.skip_if_unchanged`: nothing is imported if it is what was imported last.
    pub skip_if_unchanged: bool,
    /// `definitions.hashing.algorithm`: what tells one import from another.
    pub hashing: Hashing,
    /// `definitions.on_unsupported` and `definitions.quorum_as`: what is done about what this version does not have;
    /// `definitions.mirrored_as` and `definitions.classic_as`: which queues become others.
    pub options: ImportOptions,
}

/// A digest, of the SHA-2 family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hashing {
    /// SHA-224.
    Sha224,
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Display for Hashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        })
    }
}

impl Definitions {
    /// True if nothing is imported at the start.
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.local.is_none() && self.url.is_none()
    }
}

fn path(setting: &Setting) -> Checked<PathBuf> {
    match setting.value.as_str() {
        "" => Err("the path of a file, or of a directory of files"),
        path => Ok(path.into()),
    }
}

pub fn file(config: &mut Config, setting: &Setting) -> Checked {
    config.definitions.file = Some(path(setting)?);
    Ok(())
}

pub fn local(config: &mut Config, setting: &Setting) -> Checked {
    config.definitions.local = Some(path(setting)?);
    Ok(())
}

pub fn backend(config: &mut Config, setting: &Setting) -> Checked {
    let is_remote = ["https", "rabbit_definitions_import_https"].contains(&setting.value.as_str());
    config.definitions.is_remote = is_remote;
    config.definitions.is_local = !is_remote;
    Ok(())
}

pub fn url(config: &mut Config, setting: &Setting) -> Checked {
    config.definitions.url = Some(address(setting)?);
    Ok(())
}

pub fn skip_if_unchanged(config: &mut Config, setting: &Setting) -> Checked {
    config.definitions.skip_if_unchanged = boolean(setting)?;
    Ok(())
}

pub fn hashing(config: &mut Config, setting: &Setting) -> Checked {
    config.definitions.hashing = match setting.value.as_str() {
        "sha224" => Hashing::Sha224,
        "sha384" => Hashing::Sha384,
        "sha512" => Hashing::Sha512,
        _ => Hashing::Sha256,
    };
    Ok(())
}

pub fn on_unsupported(config: &mut Config, setting: &Setting) -> Checked {
    config.definitions.options.skip_unsupported = setting.value == "skip";
    Ok(())
}

pub fn mirrored_as(config: &mut Config, setting: &Setting) -> Checked {
    config.definitions.options.mirrored_as_quorum = setting.value == "quorum";
    Ok(())
}

pub fn classic_as(config: &mut Config, setting: &Setting) -> Checked {
    config.definitions.options.classic_as_quorum = setting.value == "quorum";
    Ok(())
}

pub fn quorum_as(config: &mut Config, setting: &Setting) -> Checked {
    config.definitions.options.quorum_as_classic = setting.value == "classic";
    Ok(())
}
