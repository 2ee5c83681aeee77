//! What a question about the catalog sees, and when that is told.

use super::world::ByHand;
use crate::groups::catalog::{
    CatalogLinks, CatalogMember, Follower, OwnRequest, SharedCatalog, nobody_knows,
};
use crate::groups::membership::CATALOG_GROUP;
use crate::groups::{Identity, Links, alone};
use bytes::Bytes;
use catalog::shared::{Contents, Happened};
use cluster::{MemberId, Membership, NodeId, Settings};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use storage::LogOptions;
use storage::faulty::FaultyFs;

/// There is nobody else.
struct Nowhere;

impl Links for Nowhere {
    fn send(&self, _: NodeId, _: Bytes) {}

    fn bulk(&self, _: NodeId, _: Bytes) {}
}

impl CatalogLinks for Nowhere {
    fn send(&self, _: NodeId, _: Bytes) {}
}

/// What was told so far, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begins,
    Ends,
    Answered,
}

/// While it takes over what was decided, somebody looks at that.
#[derive(Default)]
struct Looks {
    catalog: OnceLock<Arc<SharedCatalog>>,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Looks {
    fn note(&self, step: Step) {
        self.steps.lock().unwrap().push(step);
    }
}

impl Follower for Looks {
    fn happened(&self, _: &[Happened], _: &[Option<OwnRequest>]) {
        self.note(Step::Begins);
        let steps = self.steps.clone();
        let answered = move |_| steps.lock().unwrap().push(Step::Answered);
        let look = Box::new(|| Err(nobody_knows()));
        self.catalog.get().unwrap().read(look, Box::new(answered));
        self.note(Step::Ends);
    }

    fn resumed(&self, _: &Contents) {}
}

#[test]
fn what_is_seen_while_it_is_taken_over_is_told_once_it_is_everywhere() {
    let world = ByHand::new(FaultyFs::new());
    let (links, looks, me) = (Arc::new(Nowhere), Arc::new(Looks::default()), NodeId(1));
    let (dir, options) = (Path::new("/data"), LogOptions::default());
    let opened = alone::open(
        world.clone(),
        dir,
        options,
        me,
        1,
        Settings::default(),
        links.clone(),
    );
    let mut alone = opened.map_err(|error| format!("{error:?}")).unwrap();
    let catalog = SharedCatalog::new(alone.groups.clone(), links, looks.clone(), [me]);
    let identity = Identity {
        group: CATALOG_GROUP,
        me: MemberId::first(me),
        members: Membership::of(&[MemberId::first(me)]),
    };
    let member = alone
        .member::<CatalogMember>(identity, (), catalog.act())
        .unwrap();
    catalog.opened(member).unwrap();
    let _ = looks.catalog.set(catalog.clone());
    let ticks = |done: &dyn Fn() -> bool| {
        let is_done = (0..100).any(|_| {
            alone.groups.tick();
            catalog.tick();
            world.work();
            done()
        });
        assert!(is_done);
    };
    ticks(&|| catalog.is_fresh());
    let request = catalog::Request::EndTransient { at_most: 0 };
    catalog.ask(request, Box::new(drop));
    ticks(&|| looks.steps.lock().unwrap().len() == 3);
    let steps = looks.steps.lock().unwrap().clone();
    assert_eq!(steps, [Step::Begins, Step::Ends, Step::Answered]);
    world.abandon();
}
