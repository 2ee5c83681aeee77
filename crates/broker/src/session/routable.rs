//! Publishing where several nodes decide what exists: a node that may not believe its copy does not route by it, for it
//! might miss what was bound, or forbidden, meanwhile. Messages wait first, and are refused in the end. So do those who ask
//! for a queue that the copy does not have.

use crate::clients::outbox::ChannelId;
use crate::groups::catalog::nobody_knows;
use crate::queues::Handle;
use crate::session::Session;
use crate::topology::{Decision, Question};
use catalog::{Answer, Refusal};
use std::sync::Arc;

impl Session {
    /// Whether messages that have come may not be routed at once: then [`Session::may_route`] is to be asked. A load
    /// where this node decides alone; a look at the clock otherwise.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.broker.is_stale()
    }

    /// Whether messages that have come on this channel may be routed. To be asked again after [`crate::Event::Permitted`] if it
    /// was undecided.
    ///
    /// # Errors
    /// [`Refusal::Undecided`] while it is not known. An internal error, as RabbitMQ's when its metadata store does not
    /// answer, after two seconds in which the node was cut off from those who decide; and at once from then on until it
    /// no longer is.
    #[cold]
    pub fn may_route(&self, channel: ChannelId) -> Result<(), Refusal> {
        match self.undecided.resume(channel) {
            Some(answered) => answered.map(drop),
            None => self.ask_if_stale(channel),
        }
    }

    /// The queue that a step of this channel is about, if this session may read from it. That there is none is said once it is
    /// known: another client may have been told meanwhile, through another node, that it has declared the queue.
    ///
    /// # Errors
    /// Those of [`Session::queue_to_read`], and of [`Session::may_route`] in place of a queue that is not known.
    pub(crate) fn queue_of_step(&self, channel: ChannelId, name: &str) -> Result<Handle, Refusal> {
        let asked = self.undecided.resume(channel);
        let is_asked = asked.is_some();
        asked.transpose()?;
        match self.queue_to_read(name) {
            Err(Refusal::NoQueue { .. }) if !is_asked => {
                self.ask_if_stale(channel)?;
                self.queue_to_read(name)
            }
            found => found,
        }
    }

    fn ask_if_stale(&self, channel: ChannelId) -> Result<(), Refusal> {
        let shared = self.broker.shared_catalog();
        let Some(shared) = shared.filter(|shared| !shared.is_fresh()) else {
            return Ok(());
        };
        if shared.is_cut_off() {
            return Err(nobody_knows());
        }
        let question = Arc::<Question>::default();
        let asked = question.clone();
        let known = Box::new(|| Ok(Answer::Done));
        shared.read(known, Box::new(move |said| asked.answer(said)));
        self.undecided
            .answer(&self.outbox, channel, Decision::Awaited(question))
            .map(drop)
    }
}
