//! Where a node's [`ClusterFile`] is kept.

use super::{ClusterFile, ClusterFileError, Peer, Stage};
use crate::options::{OpenError, Options};
use std::path::PathBuf;
use std::sync::Arc;
use storage::{DirectoryLock, World};

/// The data directory, as far as it has what the node knows of itself.
#[derive(Clone, Debug)]
pub struct ClusterStore {
    world: Arc<dyn World>,
    data_dir: PathBuf,
}

impl ClusterStore {
    /// That of a node with these options.
    pub fn of(options: &Options) -> Self {
        Self {
            world: options.world.clone(),
            data_dir: options.data_dir.clone(),
        }
    }

    /// What the node knows of itself, if anything.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read(&self) -> Result<Option<ClusterFile>, ClusterFileError> {
        ClusterFile::read(self.world.files().as_ref(), &self.data_dir)
    }

    /// Replaces it, durably.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, file: &ClusterFile) -> Result<(), ClusterFileError> {
        file.write(self.world.files().as_ref(), &self.data_dir)
    }

    /// Of a node that begins to ask: durable when this returns.
    ///
    /// # Errors
    /// The directory is another process's, or can't be written; or the system has no random numbers.
    pub fn begin(&self, name: &str) -> Result<ClusterFile, ClusterFileError> {
        let fs = self.world.files();
        let lock = DirectoryLock::acquire(fs.as_ref(), &self.data_dir).map_err(ClusterFileError::Storage)?;
        let file = ClusterFile::begin(self.world.as_ref(), name)?;
        self.write(&file)?;
        drop(lock);
        Ok(file)
    }

    /// The next start is to ask this node to be let into its cluster: durable when this returns. The node must not run.
    ///
    /// # Errors
    /// It has data or a cluster of its own, or the file can't be written; the text says what to do.
    pub fn join(&self, name: &str, whom: Peer) -> Result<(), OpenError> {
        let text = |error: ClusterFileError| OpenError::Clustered(error.to_string());
        let known = self.read().map_err(text)?;
        if known.as_ref().is_some_and(|file| file.stage != Stage::Asks) || self.has_log()? {
            return Err(OpenError::Clustered(
                "the node has definitions, queues or a cluster of its own, which would be lost: reset it first (rabbitmqctl reset)".to_owned(),
            ));
        }
        let mut file = match known {
            Some(file) => file,
            None => self.begin(name).map_err(text)?,
        };
        file.peers = vec![whom];
        self.write(&file).map_err(text)
    }

    /// The node begins a cluster: durable when this returns.
    ///
    /// # Errors
    /// As [`ClusterStore::begin`].
    pub fn found(&self, file: &mut ClusterFile) -> Result<(), ClusterFileError> {
        file.found(self.world.as_ref())?;
        self.write(file)
    }

    /// Whether the node has a log: it has been opened before.
    ///
    /// # Errors
    /// The directory can't be read.
    pub fn has_log(&self) -> Result<bool, OpenError> {
        match self.world.files().list(&self.data_dir.join("log")) {
            Ok(files) => Ok(!files.is_empty()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(OpenError::Clustered(format!(
                "{} can't be read: {error}",
                self.data_dir.display()
            ))),
        }
    }

    /// Counts a start of the node, and what it is called: durable when this returns.
    ///
    /// # Errors
    /// It is a member under another name, or the file can't be written.
    pub fn start(&self, file: &mut ClusterFile, name: &str) -> Result<(), OpenError> {
        if file.name != name && file.stage != Stage::Asks {
            return Err(OpenError::Clustered(format!(
                "the data directory is that of {}, a member of a cluster, and this node is to be called {name}: a member can't be renamed. Set \
                 nodename back; or forget {} on another node, reset this one, and let it join again",
                file.name, file.name
            )));
        }
        file.name = name.to_owned();
        file.starts += 1;
        let written = self.write(file);
        written.map_err(|error| OpenError::Clustered(error.to_string()))
    }
}
