//! Whoever was deposed without hearing of it serves nobody: what it is asked once another one leads gets no answer, even
//! if nothing has to be put on record for that.

use crate::cluster::ledger::{Leadership, Ledger};
use broker::groups::Ends;
use queue::{Answer, Effect, Request};

/// A leader is asked these.
pub fn asked(ledger: &mut Ledger, by: Leadership, requests: &[Request<Ends>]) {
    let now = ledger.now;
    let numbers = requests.iter().filter_map(|request| match request {
        Request::Get { reply, .. } => Some(reply.question.0),
        Request::Consume { consumer, .. } => Some(consumer.0),
        _ => None,
    });
    ledger.asked.extend(numbers.map(|number| ((by, number), now)));
}

/// Something leaves a leader.
pub fn leaves(ledger: &mut Ledger, by: Leadership, effect: &Effect<Ends>) {
    let number = match effect {
        Effect::Reply(reply, Answer::Got { .. } | Answer::Empty) => reply.question.0,
        Effect::Deliver { consumer, .. } => consumer.0,
        _ => return,
    };
    let Some(asked) = ledger.asked.get(&(by, number)) else {
        return;
    };
    let later = ledger
        .elected
        .range((by.group, by.term + 1)..=(by.group, u64::MAX));
    let before = later.filter(|(_, at)| *at < asked).map(|((_, term), _)| *term);
    if let Some(term) = before.min() {
        let what = format!("{by:?} answers what it was asked after the election of term {term}");
        ledger.violated("who was deposed serves nobody", what);
    }
}
