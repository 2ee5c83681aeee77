//! The disks of three nodes that have formed a cluster. They do so once for all seeds.

use super::{Brokers, Prepare};
use crate::world::Simulated;
use broker::groups::NodeId;
use broker::groups::membership::{Applicant, CATALOG_GROUP, ClusterStore, Peer, Stage as FileStage, admit};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use storage::faulty::{FaultyFs, Random};

const PORT: u16 = 25_672;

/// So many starts nodes have made before a seed begins, beside the first one.
const STARTS: u64 = 4;

/// What a node is called.
pub fn name(id: NodeId) -> String {
    format!("rabbit@n{}", id.0)
}

/// A copy of the disks.
///
/// # Panics
/// If a cluster cannot be formed.
pub fn disks() -> Vec<FaultyFs> {
    static FORMED: OnceLock<Mutex<Vec<FaultyFs>>> = OnceLock::new();
    let formed = FORMED.get_or_init(|| match form() {
        Ok(disks) => Mutex::new(disks),
        Err(why) => panic!("no cluster is formed: {why}"),
    });
    let disks = formed.lock().unwrap_or_else(PoisonError::into_inner);
    disks.iter().map(FaultyFs::copy).collect()
}

fn form() -> Result<Vec<FaultyFs>, String> {
    let prepare: Prepare = Arc::new(|| {});
    let mut run = Brokers::new(Random(7), false, prepare, vec![FaultyFs::new()]);
    write(&run, 0, None)?;
    run.start(0)?;
    run.within("the first node does not start", Brokers::all_run)?;
    for _ in 2..=super::NODES {
        let number = run.admitted()?;
        run.places.push(super::Place::new(number.0, FaultyFs::new()));
        run.steps.push(None);
        run.decided.push(None);
        let at = run.places.len() - 1;
        write(&run, at, Some(number))?;
        run.start(at)?;
        run.within("a node does not join", Brokers::all_run)?;
    }
    run.within("not all nodes vote", |run| {
        let groups = |place: &super::Place| place.process.as_ref()?.side.groups();
        let status = run.places.iter().map(|it| groups(it)?.status(CATALOG_GROUP));
        let mut status = status.map(|it| it.map_or(0, |it| it.members.voters.len()));
        status.all(|voters| voters == super::NODES as usize)
    })?;
    // Their starts have high numbers, as those of nodes have that run for long: terms of groups and of queues that are a node's
    // own are far from each other then.
    for _ in 0..STARTS {
        for at in 0..run.places.len() {
            run.end(at)?;
        }
        run.within("a node does not start again", Brokers::all_run)?;
    }
    Ok(run.places.iter().map(|place| place.files.copy()).collect())
}

/// A node knows what it is.
fn write(run: &Brokers, at: usize, joins: Option<NodeId>) -> Result<(), String> {
    let place = &run.places[at];
    let world = Simulated::new(place.files.clone(), Duration::ZERO, 11 + at as u64);
    let store = ClusterStore::of(&run.options(&world, place.id));
    let text = |error: broker::groups::membership::ClusterFileError| error.to_string();
    let mut file = store.begin(&name(place.id)).map_err(text)?;
    let Some(number) = joins else {
        return store.found(&mut file).map_err(text);
    };
    file.stage = FileStage::Joins;
    (file.cluster, file.node) = ([1; 16], number);
    let peer = |id: NodeId| Peer {
        node: id,
        name: name(id),
        port: PORT,
    };
    file.peers = run.places.iter().map(|place| peer(place.id)).collect();
    file.token = token(number);
    store.write(&file).map_err(text)
}

fn token(id: NodeId) -> [u8; 16] {
    [id.0 as u8; 16]
}

impl Brokers {
    /// The first node lets another one in.
    fn admitted(&mut self) -> Result<NodeId, String> {
        let id = NodeId(self.places.len() as u32 + 1);
        let catalog = self.places[0].process.as_ref().and_then(|it| it.side.catalog());
        let catalog = catalog.ok_or("the first node has no catalog")?;
        let applicant = Applicant {
            name: name(id),
            port: PORT,
            token: token(id),
        };
        let answer = Arc::new(Mutex::new(None));
        let told = answer.clone();
        admit(&catalog, applicant, move |admitted| {
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(admitted);
        });
        let read = || answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.within("nobody is let in", |_| read().is_some())?;
        let admitted = read().ok_or("nobody is let in")?;
        admitted.map_err(|why| format!("{why:?}"))
    }
}
