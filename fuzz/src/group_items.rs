//! What a peer may say about groups, as bytes: each number is what an honest peer would say, unless the input says otherwise.

use crate::Source;
use cluster::{GroupId, MemberId, Membership, NodeId, Status};

/// The version of frames.
const VERSION: u8 = 1;

/// The highest term and index that is believed.
const NUMBER_LIMIT: u64 = 1 << 62;

/// The kinds of items, as `cluster::frame` numbers them; those of the library come first.
pub const APPEND: u8 = 1;
pub const APPEND_RESPONSE: u8 = 2;
const VOTE: u8 = 3;
pub const VOTE_RESPONSE: u8 = 4;
const SNAPSHOT: u8 = 5;
pub const HEARTBEAT: u8 = 6;
const HEARTBEAT_RESPONSE: u8 = 7;
pub const TIMEOUT_NOW: u8 = 8;
const PRE_VOTE: u8 = 9;
const PRE_VOTE_RESPONSE: u8 = 10;
pub const SLEEP: u8 = 32;
const DIGEST: u8 = 33;
const ASK: u8 = 34;
const ANSWER: u8 = 35;
const GONE: u8 = 36;
const UNHEARD: u8 = 37;
const FAILED: u8 = 38;
const KINDS: [u8; 17] = [
    APPEND,
    APPEND_RESPONSE,
    VOTE,
    VOTE_RESPONSE,
    SNAPSHOT,
    HEARTBEAT,
    HEARTBEAT_RESPONSE,
    TIMEOUT_NOW,
    PRE_VOTE,
    PRE_VOTE_RESPONSE,
    SLEEP,
    DIGEST,
    ASK,
    ANSWER,
    GONE,
    UNHEARD,
    FAILED,
];

/// What a peer knows when it speaks about a group to a member of it.
pub struct Standing {
    pub group: GroupId,
    /// Who speaks, and to whom.
    pub from: MemberId,
    pub me: MemberId,
    pub term: u64,
    /// The term of the last entry.
    pub last_term: u64,
    pub last: u64,
    pub committed: u64,
    pub base: u64,
    pub leader: u64,
    /// The last round of proof that the member has asked for.
    pub round: u64,
}

impl Standing {
    /// What the member tells of itself is what an honest peer believes.
    pub fn new(group: GroupId, from: NodeId, status: &Status, last_term: u64, round: u64) -> Self {
        Self {
            group,
            from: MemberId::first(from),
            me: status.me,
            term: status.term.max(1),
            last_term,
            last: status.last,
            committed: status.committed,
            base: status.base.index,
            leader: status.leader.map_or(0, MemberId::number),
            round,
        }
    }

    /// A number in place of the honest one.
    fn lie(&self, source: &mut Source<'_>, honest: u64) -> u64 {
        let last_life = MemberId { life: 1, ..self.from };
        match source.byte() {
            0 => 0,
            1 => 1,
            2 => honest.wrapping_add(1),
            3 => honest.wrapping_sub(1),
            4 => self.term,
            5 => self.term + 1,
            6 => self.last,
            7 => self.last + 1,
            8 => self.committed,
            9 => self.committed + 1,
            10 => self.base,
            11 => self.base.wrapping_sub(1),
            12 => self.me.number(),
            13 => self.from.number(),
            14 => last_life.number(),
            15 => NUMBER_LIMIT - 1,
            16 => NUMBER_LIMIT,
            17 => NUMBER_LIMIT + 1,
            18 => u64::MAX,
            19 => MemberId { life: 1, ..self.me }.number(),
            20 => self.last_term,
            other => honest.wrapping_add_signed(i64::from(other as i8)),
        }
    }

    /// The numbers, of which the next byte says which are lies: none, one, or those whose bit another byte has set.
    fn numbers<const N: usize>(&self, source: &mut Source<'_>, honest: [u64; N]) -> [u64; N] {
        let which = source.byte();
        let lies = match which {
            0..120 => 0,
            120..248 => 1 << (which % 8),
            _ => source.byte(),
        };
        let mut bit = 0;
        honest.map(|number| {
            let lie = lies >> bit & 1 == 1;
            bit += 1;
            if lie { self.lie(source, number) } else { number }
        })
    }
}

/// A frame while it is filled.
pub struct Speech(Vec<u8>);

impl Speech {
    pub fn new(incarnation: u64) -> Self {
        let mut speech = Self(vec![VERSION]);
        speech.number(incarnation);
        speech
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn all(&mut self, numbers: &[u64]) {
        numbers.iter().for_each(|number| self.number(*number));
    }

    /// An item of a kind that the input chooses.
    pub fn item(&mut self, source: &mut Source<'_>, at: &Standing) {
        let choice = source.byte();
        // A few are of no kind at all.
        let kind = match choice {
            250.. => choice,
            _ => KINDS[usize::from(choice) % KINDS.len()],
        };
        self.item_of(kind, source, at);
    }

    /// An item of this kind.
    pub fn item_of(&mut self, kind: u8, source: &mut Source<'_>, at: &Standing) {
        self.0.push(kind);
        let group = at.group.0;
        match kind {
            DIGEST => {
                let honest = [group, at.from.number(), at.term, at.leader, at.last, at.committed];
                self.all(&at.numbers(source, honest));
            }
            ASK => {
                let [round, count, group, to, term] =
                    at.numbers(source, [7, 1, group, at.me.number(), at.term]);
                self.all(&[round, count, group, to, term]);
            }
            ANSWER => {
                let [round, count] = at.numbers(source, [at.round, 0]);
                self.all(&[round, count]);
                (0..count.min(3)).for_each(|_| self.number(group));
            }
            GONE => {
                let gone = source.byte();
                let gone = if gone < 250 { gone % 4 } else { gone };
                self.0.push(gone);
                let first = if gone == 1 { at.last } else { at.from.number() };
                self.all(&at.numbers(source, [group, at.me.number(), first, at.last_term]));
            }
            UNHEARD => {
                let [count, node] = at.numbers(source, [1, 2]);
                self.all(&[count, node]);
            }
            FAILED => {}
            kind => self.message(kind, source, at),
        }
    }

    fn message(&mut self, kind: u8, source: &mut Source<'_>, at: &Standing) {
        self.number(at.group.0);
        // A reject, and a vote in a transfer of leadership.
        let flags = source.byte();
        self.0.push(match flags {
            0..180 => 0,
            180..250 => flags & 3,
            _ => flags,
        });
        let asks_for_votes = matches!(kind, VOTE | PRE_VOTE | PRE_VOTE_RESPONSE);
        // A leader has committed everything, and answers to votes say of which term what is committed is.
        let commit = if matches!(kind, APPEND | HEARTBEAT) {
            at.last
        } else {
            at.committed
        };
        let commit_term = if matches!(kind, VOTE_RESPONSE | PRE_VOTE_RESPONSE) {
            at.last_term
        } else {
            0
        };
        let head = at.numbers(
            source,
            [
                at.from.number(),
                at.me.number(),
                at.term + u64::from(asks_for_votes),
                at.last_term,
                at.last,
                commit,
                commit_term,
                0,
            ],
        );
        self.all(&head);
        match kind {
            APPEND => self.entries(source, at, head[2].saturating_sub(head[3])),
            SNAPSHOT => {
                let ahead = at.last + 1 + u64::from(source.byte() % 8);
                self.all(&at.numbers(source, [ahead, at.term]));
                self.membership(source, at);
            }
            _ => {}
        }
    }

    /// Entries of which the first is of a term that is so much later than the one before it.
    fn entries(&mut self, source: &mut Source<'_>, at: &Standing, later: u64) {
        let what = source.byte();
        let honest = u64::from(what & 3);
        let count = if what & 4 == 4 {
            at.lie(source, honest)
        } else {
            honest
        };
        self.number(count);
        for entry in 0..honest {
            let kind = source.byte();
            let lies = kind >> 2;
            let later = if entry == 0 { later } else { 0 };
            let later = if lies & 1 == 1 {
                at.lie(source, later)
            } else {
                later
            };
            let bytes = match kind & 3 {
                0..=2 => source.bytes().to_vec(),
                _ => change(source),
            };
            self.0.push(match lies {
                0..40 => u8::from(kind & 3 == 3),
                other => other,
            });
            self.number(later);
            let length = bytes.len() as u64;
            self.number(if lies & 2 == 2 {
                at.lie(source, length)
            } else {
                length
            });
            self.0.extend(bytes);
        }
    }

    fn membership(&mut self, source: &mut Source<'_>, at: &Standing) {
        let what = source.byte();
        let [me, from] = [at.me, at.from];
        let third = member(source.byte());
        let members = match what % 8 {
            0..=2 => Membership::of(&[me, from]),
            3 => Membership::of(&[me, from, third]),
            4 => Membership {
                learners: vec![me],
                ..Membership::of(&[from])
            },
            5 => Membership {
                outgoing: vec![me, third],
                learners_next: vec![third],
                ..Membership::of(&[me, from])
            },
            // Without the member, or one that can't be.
            6 => Membership::of(&[from, third]),
            _ => Membership::of(&[me, me]),
        };
        members.encode(&mut self.0);
    }
}

/// A member by four bits of its node and two of its life.
pub fn member(byte: u8) -> MemberId {
    MemberId {
        node: NodeId(u32::from(byte & 15) % 5 + 1),
        life: u32::from(byte >> 6),
    }
}

/// The bytes of an entry that changes the members: a few steps, of which one is of no kind now and then.
fn change(source: &mut Source<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..source.byte() % 4 {
        let step = source.byte();
        bytes.push(if step == 255 { 3 } else { step % 3 });
        let number = member(source.byte()).number();
        let mut speech = Speech(Vec::new());
        speech.number(number);
        bytes.extend(speech.0);
    }
    bytes
}
