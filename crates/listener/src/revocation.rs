//! Lists of revoked certificates: RabbitMQ's `crl_check` and `crl_sources` of kind `dir`.

use rustls::client::ServerCertVerifierBuilder;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::server::ClientCertVerifierBuilder;
use std::path::{Path, PathBuf};

/// No more files of one directory are read.
const FILES: usize = 1_024;
/// No longer list is read, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;

/// How a list in DER begins, and no text does.
const SEQUENCE: u8 = 0x30;

/// Which certificates of clients are looked for in the lists (`crl_check`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RevocationCheck {
    /// `false`: none.
    #[default]
    No,
    /// `true`: the client's and those of the authorities above it. Each must have a list that is in force.
    Chain,
    /// `peer`: the client's.
    Peer,
    /// `best_effort`: all, but one without a list is taken for good.
    BestEffort,
}

/// How revoked certificates are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocation {
    /// Whether to look.
    pub check: RevocationCheck,
    /// `crl_sources.NUMBER.path`: the directories with lists, in PEM or DER, whatever their names are.
    pub directories: Vec<PathBuf>,
}

impl Revocation {
    /// Has the verifier of clients look.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub(crate) fn tell(
        &self,
        builder: ClientCertVerifierBuilder,
        section: &str,
    ) -> Result<ClientCertVerifierBuilder, String> {
        let Some(lists) = self.lists(section)? else {
            return Ok(builder);
        };
        let builder = builder.with_crls(lists);
        Ok(match self.check {
            RevocationCheck::Peer => builder
                .only_check_end_entity_revocation()
                .enforce_revocation_expiration(),
            RevocationCheck::BestEffort => builder.allow_unknown_revocation_status(),
            _ => builder.enforce_revocation_expiration(),
        })
    }

    /// The same for the verifier of servers.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub(crate) fn tell_of_servers(
        &self,
        builder: ServerCertVerifierBuilder,
        section: &str,
    ) -> Result<ServerCertVerifierBuilder, String> {
        let Some(lists) = self.lists(section)? else {
            return Ok(builder);
        };
        let builder = builder.with_crls(lists);
        Ok(match self.check {
            RevocationCheck::Peer => builder
                .only_check_end_entity_revocation()
                .enforce_revocation_expiration(),
            RevocationCheck::BestEffort => builder.allow_unknown_revocation_status(),
            _ => builder.enforce_revocation_expiration(),
        })
    }

    /// All lists; `None` if nobody is to look at any.
    fn lists(&self, section: &str) -> Result<Option<Vec<CertificateRevocationListDer<'static>>>, String> {
        if self.check == RevocationCheck::No {
            return Ok(None);
        }
        let mut lists = Vec::new();
        for file in self.files(section)? {
            let wrong =
                |why: &dyn std::fmt::Display| format!("{section}.crl_sources {}: {why}", file.display());
            let found = read(&file).map_err(|error| wrong(&error))?;
            lists.extend(found);
        }
        if lists.is_empty() {
            return Err(format!(
                "{section}.crl_check needs lists of revoked certificates: {section}.crl_sources.1 = dir, {section}.crl_sources.1.path = DIRECTORY"
            ));
        }
        Ok(Some(lists))
    }

    /// The files in the directories, in the order of their names.
    ///
    /// # Errors
    /// A directory cannot be read, or has too many of them.
    pub(crate) fn files(&self, section: &str) -> Result<Vec<PathBuf>, String> {
        let mut files = Vec::new();
        if self.check == RevocationCheck::No {
            return Ok(files);
        }
        for directory in &self.directories {
            let wrong = |why: &dyn std::fmt::Display| {
                format!(
                    "{section}.crl_sources {} cannot be read: {why}",
                    directory.display()
                )
            };
            for entry in std::fs::read_dir(directory).map_err(|error| wrong(&error))? {
                let path = entry.map_err(|error| wrong(&error))?.path();
                if path.is_file() {
                    files.push(path);
                }
                if files.len() > FILES {
                    return Err(wrong(&"it has more than 1024 files"));
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

/// The lists in a file.
fn read(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    if bytes.first() == Some(&SEQUENCE) {
        return Ok(vec![bytes.into()]);
    }
    let found: Result<Vec<_>, PemError> = CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(lists) if lists.is_empty() => Err("it has no list of revoked certificates in PEM or DER".into()),
        Ok(lists) => Ok(lists),
        Err(error) => Err(error.to_string()),
    }
}
