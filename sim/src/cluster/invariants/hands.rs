//! A message is in one client's hands at a time, as far as its leader can know.

use crate::cluster::history::Id;
use crate::cluster::ledger::{Held, Leadership, Ledger};
use model::Seq;

pub fn given(ledger: &mut Ledger, by: Leadership, consumer: Option<u64>, seq: Seq, id: Id) {
    let Some(book) = ledger.books.get_mut(&by.group) else {
        return;
    };
    let hands = book.hands.entry(by).or_default();
    if let Some(held) = hands.insert(seq, Held { id, consumer }) {
        let what = format!("{by:?}: {seq} ({id}) goes to {consumer:?}, and {held:?}");
        ledger.violated("a message is in one client's hands", what);
    }
}
