//! What a broker has beside it as one of several, in the place of `gateway::cluster`: what it knows of itself on its disk, and
//! where what others say goes.

use super::wire::{End, Frame, Lane};
use broker::groups::catalog::SharedCatalog;
use broker::groups::membership::{ClusterFile, ClusterStore, Clustered, Companion, Peer, Stage};
use broker::groups::{NodeGroups, NodeId};
use broker::queues::{Existing, Work};
use broker::{Broker, OpenError, Options};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Where a node is dialled; nobody does.
const PORT: u16 = 25_672;

/// See the module.
pub struct Side {
    own: NodeId,
    end: End,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<(ClusterStore, ClusterFile)>,
    running: Option<(Arc<NodeGroups>, Arc<SharedCatalog>)>,
    work: Option<Arc<Work>>,
    /// With whom it has links, and in which start they are.
    up: Vec<(NodeId, u64)>,
}

impl Side {
    pub fn new(own: NodeId, end: End) -> Arc<Self> {
        Arc::new(Self {
            own,
            end,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the broker, and what clients need to reach queues elsewhere, as the server does. Waits for others.
    ///
    /// # Errors
    /// It is refused; the text says why.
    pub fn open(self: &Arc<Self>, options: Options) -> Result<(Arc<Broker>, Arc<Work>), String> {
        let store = ClusterStore::of(&options);
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let known = store.read().map_err(|error| text(&error))?;
        let mut file = known.ok_or("it knows nothing of itself")?;
        let name = options.node_name.clone();
        store.start(&mut file, &name).map_err(|error| text(&error))?;
        self.state().file = Some((store, file.clone()));
        let clustered = Clustered {
            file: file.clone(),
            port: PORT,
            links: Arc::new(self.end.clone()),
            catalog_links: Arc::new(self.end.clone()),
            companion: self.clone(),
        };
        let opened = Broker::open_clustered(options, clustered);
        let broker = opened.map_err(|error| text(&error))?;
        broker.begin_cluster().map_err(|error| text(&error))?;
        let existing: Weak<dyn Existing> = Arc::downgrade(&broker) as Weak<dyn Existing>;
        let end = Arc::new(self.end.clone());
        let groups = self.groups().ok_or("it has no groups")?;
        let work = Work::new(self.own, file.starts, end, existing, groups.rejected().clone());
        broker.join(work.clone());
        let up = {
            let mut state = self.state();
            state.work = Some(work.clone());
            state.up.clone()
        };
        up.into_iter().for_each(|(peer, start)| work.up(peer, start));
        Ok((broker, work))
    }

    /// Which start of the node this is, once it has begun.
    pub fn start(&self) -> Option<u64> {
        self.state().file.as_ref().map(|(_, file)| file.starts)
    }

    /// Its groups, once others may speak with it.
    pub fn groups(&self) -> Option<Arc<NodeGroups>> {
        self.state().running.as_ref().map(|(groups, _)| groups.clone())
    }

    /// What decides for it what exists.
    pub fn catalog(&self) -> Option<Arc<SharedCatalog>> {
        self.state().running.as_ref().map(|(_, catalog)| catalog.clone())
    }

    fn work(&self) -> Option<Arc<Work>> {
        self.state().work.clone()
    }

    /// There is a link with this start of a node.
    pub fn up(&self, peer: NodeId, start: u64) {
        self.state().up.push((peer, start));
        if let Some(work) = self.work() {
            work.up(peer, start);
        }
    }

    /// There is none any more.
    pub fn down(&self, peer: NodeId) {
        self.state().up.retain(|(node, _)| *node != peer);
        if let Some(groups) = self.groups() {
            groups.suspect(peer);
        }
        if let Some(work) = self.work() {
            work.down(peer);
        }
    }

    /// Another node says something.
    pub fn receive(&self, frame: Frame) {
        let Frame {
            from, lane, bytes, ..
        } = frame;
        match lane {
            Lane::Entries => self
                .groups()
                .into_iter()
                .for_each(|it| it.receive(from, bytes.clone())),
            Lane::Bulk => self
                .groups()
                .into_iter()
                .for_each(|it| it.bulk(from, bytes.clone())),
            Lane::Catalog => self.catalog().into_iter().for_each(|it| it.receive(from, &bytes)),
            Lane::Work => {
                if let Some(work) = self.work() {
                    work.receive(from, bytes.to_vec());
                }
            }
        }
    }

    /// The process is no more: what holds each other lets go.
    pub fn end(&self) {
        let state = std::mem::take(&mut *self.state());
        drop(state);
    }
}

impl Companion for Side {
    fn begin(&self, groups: &Arc<NodeGroups>, catalog: &Arc<SharedCatalog>) -> Result<(), String> {
        let mut state = self.state();
        if let Some((store, file)) = &mut state.file
            && file.stage == Stage::Joins
        {
            file.stage = Stage::Member;
            store.write(file).map_err(|error| error.to_string())?;
        }
        state.running = Some((groups.clone(), catalog.clone()));
        Ok(())
    }

    fn members(&self, members: &[Peer]) {
        let mut state = self.state();
        let Some((store, file)) = &mut state.file else {
            return;
        };
        if !members.iter().any(|member| member.node == file.node) {
            return;
        }
        if file.peers != members || file.stage != Stage::Member {
            file.peers = members.to_vec();
            file.stage = Stage::Member;
            // It is known from the others, too.
            let _ = store.write(file);
        }
        let running = state.running.clone();
        drop(state);
        if let Some((groups, catalog)) = running {
            for member in members {
                groups.add_peer(member.node);
                catalog.add_peer(member.node);
            }
        }
    }

    fn drained(&self, nodes: &BTreeSet<NodeId>) {
        if let Some(groups) = self.groups() {
            groups.drain(nodes.clone());
        }
    }

    fn tick(&self) {
        if let Some(work) = self.work() {
            work.tick();
        }
    }

    fn waits(&self, _: u64) -> Result<(), OpenError> {
        Ok(())
    }
}
