use super::*;
use crate::link::greeting::{ClusterId, Dialled, LinkNumber, Versions};
use crate::link::{Lane, handshake::Progress};

fn greeting(name: &str) -> Greeting {
    Greeting {
        versions: Versions::SPOKEN,
        cluster: Some(ClusterId([7; 16])),
        name: name.into(),
        incarnation: 3,
        clock_ms: 1_700_000_000_000,
        challenge: [name.len() as u8; 32],
        dialled: None,
    }
}

fn dialler(name: &str) -> Greeting {
    let dialled = Some(Dialled {
        lane: Some(Lane::Work),
        number: 5,
        knows: LinkNumber::default(),
    });
    let challenge = [9; 32];
    Greeting {
        dialled,
        challenge,
        ..greeting(name)
    }
}

fn secret(secret: &str) -> Secret {
    Secret::new(secret.as_bytes()).unwrap()
}

/// How it ends on both sides, if all that is said arrives: who dials, who is dialled.
type Ends = [Result<(), Refused>; 2];

/// Lets them speak until nothing more comes, one byte at a time.
fn speak(mut dialler: Handshake, mut listener: Handshake, mut said: Vec<u8>) -> Ends {
    let mut ends: [Option<Result<(), Refused>>; 2] = [None, None];
    let mut kept = [Vec::new(), Vec::new()];
    let mut to = 1;
    for _ in 0..6 {
        let mut answer = Vec::new();
        for byte in std::mem::take(&mut said) {
            if ends[to].is_some() {
                continue;
            }
            kept[to].push(byte);
            let end = if to == 0 { &mut dialler } else { &mut listener };
            match end.input(&kept[to], &mut answer) {
                Ok((taken, progress)) => {
                    kept[to].drain(..taken);
                    match progress {
                        Progress::Waits => {}
                        Progress::Proven => ends[to] = Some(end.welcome(&mut answer)),
                        Progress::Linked => ends[to] = Some(Ok(())),
                    }
                }
                Err(refused) => ends[to] = Some(Err(refused)),
            }
        }
        (said, to) = (answer, 1 - to);
    }
    ends.map(|end| end.expect("it ended"))
}

fn meet(dialling: (Greeting, &str, Secret, &[u8]), listening: (Greeting, Secret, &[u8])) -> Ends {
    let mut said = Vec::new();
    let dialling = Handshake::dial(dialling.0, dialling.1, dialling.2, dialling.3, &mut said);
    let listening = Handshake::listen(listening.0, listening.1, listening.2);
    speak(dialling, listening, said)
}

/// How it ends if each of the two is this.
fn between(one: Greeting, other: Greeting) -> Ends {
    let expected = other.name.clone();
    meet((one, &expected, secret("s"), b""), (other, secret("s"), b""))
}

fn both(why: Refusal, ends: Ends) -> [String; 2] {
    let [one, other] = ends.map(Result::unwrap_err);
    assert_eq!((one.why, other.why), (why, why));
    assert_ne!(
        one.by_peer, other.by_peer,
        "one refuses and the other one is told: {one:?} {other:?}"
    );
    [one.detail, other.detail]
}

#[test]
fn two_nodes_with_one_secret_are_linked() {
    assert_eq!(between(dialler("a"), greeting("bb")), [Ok(()), Ok(())]);
}

#[test]
fn a_node_without_a_cluster_is_linked_with_one_that_has_one() {
    let alone = Greeting {
        cluster: None,
        ..dialler("a")
    };
    assert_eq!(between(alone, greeting("bb")), [Ok(()), Ok(())]);
}

#[test]
fn a_wrong_secret_is_told_on_both_sides() {
    let ends = meet(
        (dialler("a"), "bb", secret("s"), b""),
        (greeting("bb"), secret("t"), b""),
    );
    both(Refusal::Secret, ends);
}

#[test]
fn nodes_that_do_not_fit_together_tell_why_on_both_sides() {
    let other_cluster = Greeting {
        cluster: Some(ClusterId([8; 16])),
        ..greeting("bb")
    };
    let details = both(Refusal::Cluster, between(dialler("a"), other_cluster));
    assert!(
        details
            .iter()
            .all(|it| it.contains(&"07".repeat(16)) && it.contains(&"08".repeat(16)))
    );

    both(Refusal::SameName, between(dialler("a"), greeting("a")));

    let ends = meet(
        (dialler("a"), "c", secret("s"), b""),
        (greeting("bb"), secret("s"), b""),
    );
    let details = both(Refusal::OtherName, ends);
    assert_eq!(details, ["c was dialled, and bb answers", "this is bb"]);

    let late = Greeting {
        clock_ms: greeting("").clock_ms + CLOCK_LIMIT_MS,
        ..greeting("bb")
    };
    let details = both(Refusal::Clock, between(dialler("a"), late.clone()));
    assert_eq!(details[0], "that of this node is 3600 s behind");
    assert_eq!(details[1], "that of this node is 3600 s ahead");
    let clock_ms = late.clock_ms - 1;
    assert!(between(dialler("a"), Greeting { clock_ms, ..late })[0].is_ok());
}

#[test]
fn nodes_that_share_no_version_say_which_one_is_the_older() {
    let newer = |greeting| Greeting {
        versions: Versions {
            lowest: 2,
            highest: 3,
        },
        ..greeting
    };
    for (ends, refuses, why) in [
        (between(dialler("a"), newer(greeting("bb"))), 1, Refusal::TooOld),
        (between(newer(dialler("a")), greeting("bb")), 1, Refusal::TooNew),
    ] {
        let refused = ends[refuses].clone().unwrap_err();
        assert_eq!((refused.why, refused.by_peer), (why, false));
        let details = ends.map(|end| end.unwrap_err().detail);
        assert!(
            details.iter().any(|it| it == "1 here, 2 to 3 there"),
            "{details:?}"
        );
        assert!(
            details.iter().any(|it| it == "2 to 3 here, 1 there"),
            "{details:?}"
        );
    }
    let both_ways = Greeting {
        versions: Versions {
            lowest: 1,
            highest: 3,
        },
        ..greeting("bb")
    };
    assert!(between(dialler("a"), both_ways)[0].is_ok());
}

#[test]
fn who_sits_between_two_sessions_of_tls_is_no_node() {
    let ends = meet(
        (dialler("a"), "bb", secret("s"), b"one session"),
        (greeting("bb"), secret("s"), b"another one"),
    );
    both(Refusal::Secret, ends);
}

#[test]
fn a_proof_that_was_recorded_proves_nothing_later() {
    let mut said = Vec::new();
    let mut dialling = Handshake::dial(dialler("a"), "bb", secret("s"), b"", &mut said);
    let mut listening = Handshake::listen(greeting("bb"), secret("s"), b"");
    let (mut answer, mut proof) = (Vec::new(), Vec::new());
    listening.input(&said, &mut answer).unwrap();
    dialling.input(&answer, &mut proof).unwrap();
    let recorded = [said, proof].concat();
    let replay = |challenge| {
        let listening = Greeting {
            challenge,
            ..greeting("bb")
        };
        let mut listening = Handshake::listen(listening, secret("s"), b"");
        listening.input(&recorded, &mut Vec::new())
    };
    assert_eq!(
        replay([2; 32]).unwrap().1,
        Progress::Proven,
        "with the challenge of then"
    );
    assert_eq!(replay([3; 32]).unwrap_err().why, Refusal::Secret);
}

#[test]
fn what_one_end_has_proven_is_no_proof_of_the_other_end() {
    // Who dials and does not know the secret sends back what it was sent: it never gets a proof to send back, and its own
    // greeting is no greeting of the other side.
    let mut listening = Handshake::listen(greeting("bb"), secret("s"), b"");
    let transcript = Transcript::default();
    let secret = secret("s");
    assert_ne!(
        secret.prove(End::Dialler, &transcript),
        secret.prove(End::Listener, &transcript)
    );
    let mut said = Vec::new();
    greeting("bb").put(&mut said);
    let mut message = PREFIX.to_vec();
    put(&mut message, GREETING, &said);
    let refused = listening.input(&message, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.why, Refusal::Rubbish, "a greeting of who is dialled");
}

#[test]
fn a_welcome_without_a_proof_is_none() {
    let mut said = Vec::new();
    let mut dialling = Handshake::dial(dialler("a"), "bb", secret("s"), b"", &mut said);
    let mut forged = PREFIX.to_vec();
    let mut body = Vec::new();
    greeting("bb").put(&mut body);
    put(&mut forged, GREETING, &body);
    put(&mut forged, WELCOME, &[0; 32]);
    let refused = dialling.input(&forged, &mut Vec::new()).unwrap_err();
    assert_eq!((refused.why, refused.by_peer), (Refusal::Secret, false));
}

#[test]
fn rubbish_is_answered_with_nothing_and_what_is_too_long_is_not_waited_for() {
    let listening = || Handshake::listen(greeting("bb"), secret("s"), b"");
    let mut out = Vec::new();
    for rubbish in [&b"GET / HTTP/1.1\r\n"[..], b"AMQP\0\0\x09\x01", b"L?"] {
        let refused = listening().input(rubbish, &mut out).unwrap_err();
        assert_eq!((refused.why, &out[..]), (Refusal::Rubbish, &b""[..]));
    }
    let mut long = PREFIX.to_vec();
    long.extend([GREETING, 0x04, 0x01]);
    let refused = listening().input(&long, &mut out).unwrap_err();
    assert_eq!(refused.why, Refusal::TooLong);
    assert_eq!(
        out,
        [&PREFIX[..], &[REFUSAL, 0, 1, Refusal::TooLong.number()]].concat()
    );
    for kind in [PROOF, WELCOME, 99] {
        let early = [&PREFIX[..], &[kind, 0, 32], &[0; 32]].concat();
        assert_eq!(
            listening().input(&early, &mut Vec::new()).unwrap_err().why,
            Refusal::Rubbish
        );
    }
}

#[test]
fn nobody_is_welcome_before_the_proof() {
    let mut listening = Handshake::listen(greeting("bb"), secret("s"), b"");
    assert_eq!(
        listening.welcome(&mut Vec::new()).unwrap_err().why,
        Refusal::Secret
    );
}
