//! Links for queues of other nodes. Of the work of clients what an octet says that stands first is the queues'.

use super::links::Links;
use broker::groups::NodeId;
use broker::queues::WorkLinks;
use bytes::Bytes;
use protocol::link::Lane;

/// What stands before frames of queues in [`Lane::Work`].
const QUEUES: u8 = 2;

/// What a frame of [`Lane::Work`] says about queues; `None` if it is about something else.
pub(crate) fn of_queues(frame: &[u8]) -> Option<&[u8]> {
    frame.strip_prefix(&[QUEUES])
}

impl WorkLinks for Links {
    fn work(&self, to: NodeId, parts: Vec<Bytes>) {
        // What is lost is missed by its session.
        let _ = self.send(to, Lane::Work, marked(parts));
    }

    fn spare(&self, to: NodeId, parts: Vec<Bytes>) {
        let _ = self.send_spare(to, Lane::Work, marked(parts));
    }
}

fn marked(mut parts: Vec<Bytes>) -> Vec<Bytes> {
    parts.insert(0, Bytes::from_static(&[QUEUES]));
    parts
}
