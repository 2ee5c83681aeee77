//! Frames of a peer that are of no use.

use super::trio::Trio;
use bytes::Bytes;
use cluster::NodeId;

#[test]
fn frames_of_a_peer_that_are_rejected_share_one_line_of_log_in_whichever_lane_they_come() {
    let trio = Trio::new();
    let (groups, from) = (trio.groups(1), NodeId(2));
    let rubbish = || Bytes::from_static(b"\xffrubbish");
    assert_eq!(groups.rejected().untold(from), None);
    groups.receive(from, rubbish());
    assert_eq!(groups.rejected().untold(from), Some(0));
    groups.receive(from, rubbish());
    groups.bulk(from, rubbish());
    assert_eq!(groups.rejected().untold(from), Some(2));
    assert_eq!(groups.rejected().untold(NodeId(3)), None);
    // Ten seconds later there is another line.
    for _ in 0..100 {
        groups.tick();
    }
    groups.bulk(from, rubbish());
    assert_eq!(groups.rejected().untold(from), Some(0));
}
