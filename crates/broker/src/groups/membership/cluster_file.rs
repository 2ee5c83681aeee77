//! What a node knows of itself as one of several: a file of its data directory, replaced as a whole.
//!
//! ```text
//! leveret cluster 1
//! stage = asks | founds | joins | member
//! name = NAME                                  of the node
//! token = 32 hexadecimal digits
//! starts = NUMBER
//! cluster = 32 hexadecimal digits              not of one that asks
//! node = NUMBER                                not of one that asks
//! peer = NUMBER PORT NAME                      any number of these
//! end
//! ```

use super::Peer;
use cluster::NodeId;
use std::fmt;
use std::path::{Path, PathBuf};
use storage::{FileSystem, StorageError, World};

/// The file's name in the data directory.
const NAME: &str = "cluster";

/// The first line.
const FORMAT: &str = "leveret cluster 1";

/// The most bytes of it: far more than of as many members as there may be.
const LIMIT: usize = 1 << 20;

/// How far a node has come with being one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It asks to be let into a cluster, and may be on record there.
    Asks,
    /// It begins a cluster of which nobody else is.
    Founds,
    /// It has its number, and its log has never been opened.
    Joins,
    /// Its log may hold what it has promised to others.
    Member,
}

impl Stage {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Asks, "asks"),
        (Self::Founds, "founds"),
        (Self::Joins, "joins"),
        (Self::Member, "member"),
    ];

    fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(stage, _)| *stage == self);
        found.map_or("", |(_, word)| word)
    }
}

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterFile {
    pub stage: Stage,
    /// The node's name.
    pub name: String,
    /// What the node is recognised by.
    pub token: [u8; 16],
    /// Which start of it this is.
    pub starts: u64,
    /// The cluster's number; zeros of one that asks.
    pub cluster: [u8; 16],
    /// The node's number; 0 of one that asks.
    pub node: NodeId,
    /// The members, as they were known last.
    pub peers: Vec<Peer>,
}

/// Why the file is of no use.
#[derive(Debug)]
pub enum ClusterFileError {
    /// It can't be read or written.
    Storage(StorageError),
    /// It says something that this version does not understand.
    Malformed(PathBuf),
    /// The system has no random numbers.
    Random(std::io::Error),
}

impl fmt::Display for ClusterFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storage(error) => write!(f, "{error}"),
            Self::Malformed(path) => write!(
                f,
                "{} can't be understood: it is damaged, or of a later version. Put back a copy, or reset the node and let it join its cluster anew",
                path.display()
            ),
            Self::Random(error) => write!(f, "the system gives no random numbers: {error}"),
        }
    }
}

impl std::error::Error for ClusterFileError {}

impl ClusterFile {
    /// Reads it; `None` if the node is alone, and always was.
    ///
    /// # Errors
    /// It can't be read, or not be understood.
    pub fn read(fs: &dyn FileSystem, data_dir: &Path) -> Result<Option<Self>, ClusterFileError> {
        let path = Self::path(data_dir);
        let bytes = storage::read_file(fs, &path, LIMIT).map_err(ClusterFileError::Storage)?;
        let Some(bytes) = bytes else { return Ok(None) };
        let read = std::str::from_utf8(&bytes).ok().and_then(Self::parse);
        read.map(Some).ok_or(ClusterFileError::Malformed(path))
    }

    /// Where it is.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join(NAME)
    }

    /// Replaces it, durably.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, fs: &dyn FileSystem, data_dir: &Path) -> Result<(), ClusterFileError> {
        let written = storage::replace_file(fs, &Self::path(data_dir), self.to_string().as_bytes());
        written.map_err(ClusterFileError::Storage)
    }

    /// Of a node that begins to ask.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn begin(world: &dyn World, name: &str) -> Result<Self, ClusterFileError> {
        Ok(Self {
            stage: Stage::Asks,
            name: name.to_owned(),
            token: random(world)?,
            starts: 0,
            cluster: [0; 16],
            node: NodeId(0),
            peers: Vec::new(),
        })
    }

    /// Of a node that begins a cluster, as its first one.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn found(&mut self, world: &dyn World) -> Result<(), ClusterFileError> {
        self.cluster = random(world)?;
        self.stage = Stage::Founds;
        self.node = NodeId(1);
        Ok(())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != FORMAT {
            return None;
        }
        let mut next = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(" = ");
        let word = next("stage")?;
        let stage = Stage::ALL.iter().find(|(_, known)| *known == word)?.0;
        let name = next("name")?.to_owned();
        let token = digits(next("token")?)?;
        let starts = next("starts")?.parse().ok()?;
        let (cluster, node) = match stage {
            Stage::Asks => ([0; 16], NodeId(0)),
            _ => (digits(next("cluster")?)?, NodeId(next("node")?.parse().ok()?)),
        };
        if stage != Stage::Asks && (cluster == [0; 16] || node.0 == 0) {
            return None;
        }
        let mut peers = Vec::new();
        loop {
            let line = lines.next()?;
            if line == "end" {
                break;
            }
            let mut words = line.strip_prefix("peer = ")?.splitn(3, ' ');
            peers.push(Peer {
                node: NodeId(words.next()?.parse().ok()?),
                port: words.next()?.parse().ok()?,
                name: words.next()?.to_owned(),
            });
        }
        Some(Self {
            stage,
            name,
            token,
            starts,
            cluster,
            node,
            peers,
        })
    }
}

impl fmt::Display for ClusterFile {
    /// As it is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |bytes: &[u8; 16]| bytes.map(|byte| format!("{byte:02x}")).concat();
        writeln!(f, "{FORMAT}\nstage = {}\nname = {}", self.stage.word(), self.name)?;
        writeln!(f, "token = {}\nstarts = {}", hex(&self.token), self.starts)?;
        if self.stage != Stage::Asks {
            writeln!(f, "cluster = {}\nnode = {}", hex(&self.cluster), self.node.0)?;
        }
        for peer in &self.peers {
            writeln!(f, "peer = {} {} {}", peer.node.0, peer.port, peer.name)?;
        }
        f.write_str("end\n")
    }
}

impl fmt::Debug for ClusterFile {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "node {} ({}), {:?}, start {}",
            self.node.0, self.name, self.stage, self.starts
        )
    }
}

fn random(world: &dyn World) -> Result<[u8; 16], ClusterFileError> {
    let mut bytes = [0; 16];
    world.random(&mut bytes).map_err(ClusterFileError::Random)?;
    Ok(bytes)
}

fn digits(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::System;
    use storage::faulty::FaultyFs;

    fn file(stage: Stage) -> ClusterFile {
        let peer = |node, name: &str| Peer {
            node: NodeId(node),
            name: name.to_owned(),
            port: 25_672,
        };
        let mut file = ClusterFile::begin(System::real().as_ref(), "rabbit@n2").unwrap();
        if stage != Stage::Asks {
            file.found(System::real().as_ref()).unwrap();
            file.peers = vec![peer(1, "rabbit@n1"), peer(2, "rabbit@n2")];
        }
        file.stage = stage;
        file.starts = 7;
        file
    }

    #[test]
    fn it_is_read_as_it_was_written_and_no_part_of_it_is_taken_for_it() {
        let fs = FaultyFs::new();
        let dir = Path::new("/data");
        fs.create_dir(dir).unwrap();
        assert!(ClusterFile::read(&fs, dir).unwrap().is_none());
        for (stage, _) in Stage::ALL {
            let file = file(stage);
            file.write(&fs, dir).unwrap();
            assert_eq!(ClusterFile::read(&fs, dir).unwrap(), Some(file.clone()));
            let text = file.to_string();
            for length in 0..text.len() - 1 {
                assert_eq!(ClusterFile::parse(&text[..length]), None, "{length} of {text}");
            }
        }
    }

    #[test]
    fn after_a_power_cut_it_is_the_one_before_or_the_one_after() {
        let dir = Path::new("/data");
        let (before, mut after) = (file(Stage::Asks), file(Stage::Member));
        after.token = before.token;
        for seed in 0..200 {
            let fs = FaultyFs::new();
            fs.create_dir(dir).unwrap();
            fs.sync_dir(Path::new("/")).unwrap();
            before.write(&fs, dir).unwrap();
            after.write(&fs, dir).unwrap();
            let fs = fs.crash(seed);
            assert_eq!(ClusterFile::read(&fs, dir).unwrap(), Some(after.clone()));
        }
    }

    #[test]
    fn what_operators_are_shown_of_it_has_no_token() {
        let file = file(Stage::Member);
        let token = file.token.map(|byte| format!("{byte:02x}")).concat();
        assert!(!format!("{file:?}").contains(&token));
    }

    #[test]
    fn it_has_the_text_that_it_always_had_and_one_of_a_later_version_is_refused_and_says_so() {
        let mut file = file(Stage::Member);
        (file.token, file.cluster) = ([0xab; 16], [7; 16]);
        let text = "leveret cluster 1\nstage = member\nname = rabbit@n2\n\
                    token = abababababababababababababababab\nstarts = 7\n\
                    cluster = 07070707070707070707070707070707\nnode = 1\n\
                    peer = 1 25672 rabbit@n1\npeer = 2 25672 rabbit@n2\nend\n";
        assert_eq!(file.to_string(), text);
        let fs = FaultyFs::new();
        let dir = Path::new("/data");
        fs.create_dir(dir).unwrap();
        let later = text.replacen("cluster 1", "cluster 2", 1);
        storage::replace_file(&fs, &ClusterFile::path(dir), later.as_bytes()).unwrap();
        let error = ClusterFile::read(&fs, dir).unwrap_err().to_string();
        assert!(
            error.contains("/data/cluster") && error.contains("of a later version"),
            "{error}"
        );
    }
}
