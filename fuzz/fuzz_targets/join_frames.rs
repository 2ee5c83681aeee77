//! What a node asks that is no member of a cluster, and what it is answered: whatever comes is read as what would be written the
//! same, or refused, and no text that is read can write lines into a log.
#![no_main]

use broker::groups::NodeId;
use broker::groups::membership::Peer;
use gateway::cluster::{Answer, Question, Welcome};
use leveret_fuzz::Source;
use libfuzzer_sys::fuzz_target;

fn read(bytes: &[u8]) {
    if let Some(question) = Question::decode(bytes) {
        assert_eq!(&question.encode()[..], bytes);
    }
    let Some(answer) = Answer::decode(bytes) else {
        return;
    };
    assert_eq!(&answer.encode()[..], bytes);
    match answer {
        Answer::Refused(text) => assert!(!text.contains(char::is_control)),
        Answer::Welcome(Welcome { members, .. }) => {
            let mut names = members.iter().map(|member| &member.name);
            assert!(names.all(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())));
        }
        Answer::Alone | Answer::NotNow => {}
    }
}

/// A member whose name is nearly one.
fn member(source: &mut Source<'_>) -> Peer {
    let (node, port) = (u32::from(source.byte()), u16::from(source.byte()) + 1);
    let name: String = source.bytes().iter().map(|byte| char::from(byte & 127)).collect();
    Peer {
        node: NodeId(node),
        name,
        port,
    }
}

fuzz_target!(|input: &[u8]| {
    read(input);
    let mut source = Source::new(input);
    let kind = source.byte();
    let mut bytes = match kind % 4 {
        0 => Question {
            port: u16::from(source.byte()) << 8 | u16::from(source.byte()),
            token: [source.byte(); 16],
            has_data: kind & 4 == 4,
        }
        .encode(),
        1 => Answer::Refused(String::from_utf8_lossy(source.bytes()).repeat(usize::from(kind >> 3))).encode(),
        _ => {
            let [cluster, node] = [source.byte(), source.byte()];
            let members = (0..kind >> 4).map(|_| member(&mut source)).collect();
            let (cluster, node) = ([cluster; 16], NodeId(node.into()));
            Answer::Welcome(Welcome {
                cluster,
                node,
                members,
            })
            .encode()
        }
    }
    .to_vec();
    read(&bytes);
    source.spoil(&mut bytes);
    read(&bytes);
});
