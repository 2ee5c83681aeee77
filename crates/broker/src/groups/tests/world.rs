//! The surroundings of a node whose threads make their steps when a test says so.

use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use storage::faulty::FaultyFs;
use storage::{FileSystem, Step, Task, Thread, World};

#[derive(Debug)]
pub struct ByHand {
    myself: Weak<Self>,
    files: FaultyFs,
    threads: Mutex<Vec<Slot>>,
    /// The thread of this name makes no step unless it is named.
    held: Mutex<Option<&'static str>>,
}

struct Slot {
    name: String,
    /// Not here while it makes a step, nor after its end.
    task: Option<Box<dyn Task>>,
    ready: bool,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slot")
    }
}

impl ByHand {
    pub fn new(files: FaultyFs) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            files,
            threads: Mutex::default(),
            held: Mutex::default(),
        })
    }

    /// Has all threads make steps until none has anything to do.
    pub fn work(&self) {
        loop {
            let count = self.threads.lock().unwrap().len();
            let worked = (0..count).filter(|number| self.step(*number)).count();
            if worked == 0 {
                return;
            }
        }
    }

    /// Has one thread make a step that has something to do.
    pub fn step_once(&self) {
        let count = self.threads.lock().unwrap().len();
        (0..count).any(|number| self.step(number));
    }

    /// The thread of this name makes no step from now on, or any of them does again.
    pub fn hold(&self, name: Option<&'static str>) {
        *self.held.lock().unwrap() = name;
    }

    /// The thread that is held makes a step. Whether it had something to do.
    pub fn step_held(&self) -> bool {
        let held = self.held.lock().unwrap().take();
        let threads = self.threads.lock().unwrap();
        let number = threads.iter().position(|slot| Some(slot.name.as_str()) == held);
        drop(threads);
        let stepped = number.is_some_and(|number| self.step(number));
        self.hold(held);
        stepped
    }

    /// Whether the thread had something to do.
    fn step(&self, number: usize) -> bool {
        let held = *self.held.lock().unwrap();
        let mut threads = self.threads.lock().unwrap();
        if Some(threads[number].name.as_str()) == held || !std::mem::take(&mut threads[number].ready) {
            return false;
        }
        let Some(mut task) = threads[number].task.take() else {
            return false;
        };
        drop(threads);
        let next = task.step();
        let slot = &mut self.threads.lock().unwrap()[number];
        slot.ready |= next == Step::Again;
        slot.task = (next != Step::End).then_some(task);
        true
    }

    /// The process is gone: no thread goes on.
    pub fn abandon(&self) {
        let tasks: Vec<_> = self
            .threads
            .lock()
            .unwrap()
            .iter_mut()
            .map(|slot| slot.task.take())
            .collect();
        drop(tasks);
    }
}

impl World for ByHand {
    fn files(&self) -> Arc<dyn FileSystem> {
        Arc::new(self.files.clone())
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn wall_ms(&self) -> u64 {
        1
    }

    fn random(&self, _bytes: &mut [u8]) -> io::Result<()> {
        Ok(())
    }

    fn start(&self, name: &str, task: Box<dyn Task>) -> io::Result<Arc<dyn Thread>> {
        let mut threads = self.threads.lock().unwrap();
        threads.push(Slot {
            name: name.to_owned(),
            task: Some(task),
            ready: true,
        });
        Ok(Arc::new(Turned {
            world: self.myself.clone(),
            number: threads.len() - 1,
        }))
    }

    fn pause(&self, _time: Duration) {}
}

#[derive(Debug)]
struct Turned {
    world: Weak<ByHand>,
    number: usize,
}

impl Thread for Turned {
    fn wake(&self) {
        if let Some(world) = self.world.upgrade() {
            world.threads.lock().unwrap()[self.number].ready = true;
        }
    }

    fn join(&self) -> bool {
        while let Some(world) = self.world.upgrade()
            && world.threads.lock().unwrap()[self.number].task.is_some()
        {
            self.turn();
        }
        true
    }

    fn is_turned(&self) -> bool {
        true
    }

    fn turn(&self) {
        self.wake();
        if let Some(world) = self.world.upgrade() {
            world.step(self.number);
        }
    }
}
