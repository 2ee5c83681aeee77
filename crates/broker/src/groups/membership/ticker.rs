//! What has a node's groups, its catalog and its companion look at the time, and the members of the catalog's group follow
//! the list.

use super::super::catalog::SharedCatalog;
use super::super::node_groups::NodeGroups;
use super::{CATALOG_GROUP, Companion, ENDED_PART, next_steps};
use catalog::{Answer, Request};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage::{Step, Task, Thread, World};

/// The time between two ticks.
const TICK: Duration = Duration::from_millis(100);

/// Ticks until it is dropped.
pub struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Arc<dyn Thread>,
    catalog: Arc<SharedCatalog>,
}

struct Ticking {
    groups: Arc<NodeGroups>,
    catalog: Arc<SharedCatalog>,
    clearing: Clearing,
    companion: Arc<dyn Companion>,
    world: Arc<dyn World>,
    stop: Arc<AtomicBool>,
    next: Duration,
}

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        groups: &Arc<NodeGroups>,
        catalog: &Arc<SharedCatalog>,
        companion: &Arc<dyn Companion>,
    ) -> io::Result<Self> {
        let (stop, world) = (Arc::new(AtomicBool::new(false)), groups.node().world.clone());
        let ticking = Ticking {
            groups: groups.clone(),
            catalog: catalog.clone(),
            clearing: Clearing::default(),
            companion: companion.clone(),
            stop: stop.clone(),
            next: world.elapsed() + TICK,
            world: world.clone(),
        };
        let thread = world.start("ticks", Box::new(ticking))?;
        let catalog = catalog.clone();
        Ok(Self {
            stop,
            thread,
            catalog,
        })
    }

    /// Whether somebody else has to make its steps: nobody who waits for others may stand still then.
    pub fn is_turned(&self) -> bool {
        self.thread.is_turned()
    }
}

impl Task for Ticking {
    fn step(&mut self) -> Step {
        if self.stop.load(Ordering::Acquire) {
            return Step::End;
        }
        let now = self.world.elapsed();
        if now >= self.next {
            self.groups.tick();
            self.catalog.tick();
            self.companion.tick();
            self.follow_list();
            // A process that stood still makes up for nothing.
            self.next = now + TICK;
        }
        Step::Sleep(Some(self.next.saturating_sub(now)))
    }
}

impl Ticking {
    /// Who leads the catalog's group sees to its members.
    fn follow_list(&mut self) {
        let Some(member) = self.catalog.member().filter(|member| member.leads()) else {
            self.clearing.leads = false;
            return;
        };
        self.clearing.go_on(&self.catalog);
        let view = member.inspect(|machine| machine.shared().view());
        let status = self.groups.status(CATALOG_GROUP);
        let (Some(view), Some(status)) = (view, status) else {
            return;
        };
        for step in next_steps(&view, &status.members) {
            if self.groups.change(CATALOG_GROUP, &[step]).is_ok() {
                tracing::info!(area = "cluster", "members of the catalog's group: {step:?}");
                self.clearing.is_due.store(true, Ordering::Release);
                return;
            }
        }
    }
}

/// What ended with a node is deleted by whoever leads, too, some of it at a time: who has begun that may be gone, as a node is
/// that had itself removed.
#[derive(Default)]
struct Clearing {
    leads: bool,
    is_due: Arc<AtomicBool>,
    is_asked: Arc<AtomicBool>,
}

impl Clearing {
    /// With each tick of a node that leads.
    fn go_on(&mut self, catalog: &SharedCatalog) {
        let is_new = !std::mem::replace(&mut self.leads, true);
        let is_asked = self.is_asked.load(Ordering::Acquire);
        if is_asked || !(self.is_due.swap(false, Ordering::AcqRel) || is_new) {
            return;
        }
        self.is_asked.store(true, Ordering::Release);
        let (is_due, is_asked) = (self.is_due.clone(), self.is_asked.clone());
        let reply = move |said| {
            let is_over = matches!(said, Ok(Answer::Cleared(cleared)) if cleared < ENDED_PART);
            is_due.fetch_or(!is_over, Ordering::AcqRel);
            is_asked.store(false, Ordering::Release);
        };
        catalog.ask(Request::EndTransient { at_most: ENDED_PART }, Box::new(reply));
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread.wake();
        self.thread.join();
        self.catalog.stop();
    }
}
