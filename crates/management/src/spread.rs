//! Lists of objects that live on several nodes: each node tells which it has, they are put in order, and of those that are to be
//! shown the rows are asked for. What a node has to tell follows the page that is asked for.

use crate::call::Call;
use crate::listing::{Columns, Filter, List, Page, compare};
use crate::others::{self, Question, TOLD};
use crate::pieces::{Cut, Piece};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::snapshot::{Elsewhere, Id, Share};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::PoisonError;

/// So many rows of a list without pages are made at a time.
const BATCH: usize = 256;

/// An object of a list.
pub enum Place<T> {
    /// It is here, or there is nobody to ask.
    Own(T),
    /// The node of this number has it; and what is shown of it if that says nothing.
    Elsewhere(usize, Id, Option<T>),
}

/// How to list things of one kind that are on several nodes.
pub struct Spread<'a, T> {
    /// The request.
    pub call: &'a Call<'a>,
    /// How to list those of one node.
    pub list: List<'a, T>,
    /// What tells one from all others of its kind and node.
    pub id: &'a dyn Fn(&T) -> Id,
    /// What other nodes have to know to make their rows.
    pub words: Map<String, Value>,
}

impl<T> Spread<'_, T> {
    /// Answers a request for the list: of all nodes, or for another node of this one. `items` are those here, in the order in
    /// which RabbitMQ lists them, the same ones for each piece; there are `total` of them.
    ///
    /// # Errors
    /// The page makes no sense, or lies behind the last one.
    pub fn reply(&self, items: impl Iterator<Item = T>, total: usize) -> Result<Reply, Refusal> {
        let call = self.call;
        if call.for_node {
            return self.told(items, total);
        }
        let page = Page::of(&call.query)?;
        let limit = page.as_ref().map(|page| page.first().saturating_add(page.size));
        let elsewhere = call
            .snapshot
            .elsewhere
            .get_or_init(|| self.elsewhere(others::running(call), limit, &Value::Null));
        if elsewhere.nodes.is_empty() {
            return self.list.reply(&call.query, call.cut, items, total);
        }
        self.merged(items.collect(), total, elsewhere, |_| None)
    }

    /// The list of these objects, of which there are `total`, and of those of other nodes. `known` is what is known here of
    /// one of those.
    ///
    /// # Errors
    /// As [`Spread::reply`].
    pub fn merged(
        &self,
        own: Vec<T>,
        total: usize,
        elsewhere: &Elsewhere,
        known: impl Fn(Id) -> Option<T>,
    ) -> Result<Reply, Refusal> {
        let query = &self.call.query;
        let page = Page::of(query)?;
        let filter = Filter::of(query).filter(|_| page.is_some());
        let passes = |item: &T| {
            filter
                .as_ref()
                .is_none_or(|it| it.matches((self.list.name)(item)))
        };
        let sort = query.get("sort");
        let own = own.into_iter().filter(passes).map(|item| {
            let key = sort.map_or(Value::Null, |path| self.list.key(&item, path));
            (key, Place::Own(item))
        });
        let mut places: Vec<(Value, Place<T>)> = own.collect();
        let shares = || elsewhere.shares.iter().flatten();
        let filtered = places.len() + shares().map(|share| share.filtered).sum::<usize>();
        let total = total + shares().map(|share| share.total).sum::<usize>();
        for (node, share) in elsewhere.shares.iter().enumerate() {
            let entries = share.iter().flat_map(|share| &share.entries);
            places.extend(entries.map(|(id, key)| (key.clone(), Place::Elsewhere(node, *id, known(*id)))));
        }
        if sort.is_some() {
            places.sort_by(|(one, _), (other, _)| compare(one, other));
            if query.flag("sort_reverse") {
                places.reverse();
            }
        }
        let places = places.into_iter();
        self.placed(&elsewhere.nodes, places, |(_, place)| place, filtered, total)
    }

    /// The list of these objects, in this order, or the page of it that is asked for; so many pass its filter. Where one is, is
    /// looked up by `place` for those alone that are shown.
    ///
    /// # Errors
    /// As [`Spread::reply`].
    pub fn placed<I>(
        &self,
        nodes: &[String],
        items: impl Iterator<Item = I>,
        place: impl Fn(I) -> Place<T>,
        filtered: usize,
        total: usize,
    ) -> Result<Reply, Refusal> {
        let call = self.call;
        let Some(page) = Page::of(&call.query)? else {
            // What is sorted has to be there as a whole first.
            let is_sorted = call.query.get("sort").is_some();
            let mut piece = Piece::of(if is_sorted { Cut::Whole } else { call.cut });
            let given = piece.batches(items, BATCH, &call.snapshot.begun, |batch| {
                let places: Vec<Place<T>> = batch.into_iter().map(&place).collect();
                self.rows(nodes, &places)
            });
            return Ok(Reply::piece(piece.end(given)));
        };
        page.check(filtered)?;
        let on_page = items.skip(page.first()).take(page.size);
        let on_page: Vec<Place<T>> = on_page.map(place).collect();
        let rows = self.rows(nodes, &on_page).into_iter().flatten().collect();
        Ok(page.reply(rows, filtered, total))
    }

    /// What these nodes have of the list: all of it, or the first `limit` objects of those that pass its filter. `vhosts` is
    /// where the asker may look, if that is not everywhere.
    pub fn elsewhere(&self, nodes: Vec<String>, limit: Option<usize>, vhosts: &Value) -> Elsewhere {
        let mut shares: Vec<Option<Share>> = nodes.iter().map(|_| Some(Share::default())).collect();
        let mut open: Vec<usize> = (0..nodes.len()).collect();
        while !open.is_empty() {
            let questions = open.iter().map(|at| {
                let first = shares[*at].as_ref().map_or(0, |share| share.entries.len());
                let body = self.body(json!({"first": first, "limit": limit, "vhosts": vhosts}));
                let again = Question::again(self.call);
                (nodes[*at].clone(), Question { body, ..again })
            });
            let answers = others::ask(self.call, questions.collect());
            let asked = std::mem::take(&mut open).into_iter();
            for (at, answer) in asked.zip(answers) {
                let more = answer.and_then(|answer| share(&answer.found()?));
                match (more, &mut shares[at]) {
                    (Some(more), Some(share)) => {
                        let is_more = !more.entries.is_empty();
                        (share.total, share.filtered) = (more.total, more.filtered);
                        share.entries.extend(more.entries);
                        let wanted = limit.unwrap_or(usize::MAX).min(share.filtered);
                        if is_more && share.entries.len() < wanted {
                            open.push(at);
                        }
                    }
                    (_, share) => *share = None,
                }
            }
        }
        Elsewhere { nodes, shares }
    }

    /// The rows of these objects; `None` for what is gone, or where nobody says anything.
    fn rows(&self, nodes: &[String], places: &[Place<T>]) -> Vec<Option<Value>> {
        let columns = Columns::of(&self.call.query);
        let own = |item: &T| columns.choose((self.list.row)(item));
        let mut rows: Vec<Option<Value>> = places.iter().map(|_| None).collect();
        // Which rows each node has still to tell.
        let mut open: Vec<Vec<usize>> = nodes.iter().map(|_| Vec::new()).collect();
        for (at, place) in places.iter().enumerate() {
            match place {
                Place::Own(item) => rows[at] = Some(own(item)),
                Place::Elsewhere(node, ..) => open[*node].push(at),
            }
        }
        let mut silent = self
            .call
            .snapshot
            .silent
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (node, wanted) in nodes.iter().zip(&mut open) {
            if silent.contains(node) {
                wanted.clear();
            }
        }
        let id = |at: &usize| match &places[*at] {
            Place::Own(_) => None,
            Place::Elsewhere(_, id, _) => Some(*id),
        };
        loop {
            let asked: Vec<usize> = (0..nodes.len()).filter(|node| !open[*node].is_empty()).collect();
            if asked.is_empty() {
                break;
            }
            let questions = asked.iter().map(|node| {
                let ids: Vec<Id> = open[*node].iter().filter_map(id).collect();
                let again = Question::again(self.call);
                let body = self.body(json!({"ids": ids}));
                (nodes[*node].clone(), Question { body, ..again })
            });
            let answers = others::ask(self.call, questions.collect());
            for (node, answer) in asked.into_iter().zip(answers) {
                if answer.is_none() {
                    silent.insert(nodes[node].clone());
                }
                let mut found = answer.and_then(|answer| answer.found()).unwrap_or_default();
                let told = found.get_mut("rows").and_then(Value::as_array_mut);
                let told = told.map(std::mem::take).unwrap_or_default();
                let wanted = std::mem::take(&mut open[node]);
                if !told.is_empty() {
                    open[node] = wanted.get(told.len()..).unwrap_or_default().to_vec();
                }
                for (at, row) in wanted.into_iter().zip(told) {
                    rows[at] = Some(row).filter(|row| !row.is_null());
                }
            }
        }
        for (place, row) in places.iter().zip(&mut rows) {
            if let (Place::Elsewhere(_, _, Some(known)), None) = (place, &row) {
                *row = Some(own(known));
            }
        }
        rows
    }

    /// What another node is asked, with what it has to know.
    fn body(&self, mut asked: Value) -> Value {
        if let Value::Object(asked) = &mut asked {
            asked.extend(self.words.clone());
        }
        asked
    }

    /// What another node is told: the rows of the objects that it names, or which objects there are.
    ///
    /// # Errors
    /// It asks for something else.
    fn told(&self, items: impl Iterator<Item = T>, total: usize) -> Result<Reply, Refusal> {
        let body = self.call.json()?;
        let Some(ids) = ids(&body)? else {
            return Ok(self.told_share(items, total, &body));
        };
        let mut found: HashMap<Id, Option<T>> = ids.iter().map(|id| (*id, None)).collect();
        for item in items {
            if let Some(place) = found.get_mut(&(self.id)(&item)) {
                *place = Some(item);
            }
        }
        Ok(self.told_rows(&ids, |id| found.remove(&id)?))
    }

    /// The same for objects that are found by what tells them from others.
    ///
    /// # Errors
    /// As above.
    pub fn told_by_id<I: Iterator<Item = T>>(
        &self,
        find: impl FnMut(Id) -> Option<T>,
        items: impl Fn() -> I,
    ) -> Result<Reply, Refusal> {
        let body = self.call.json()?;
        Ok(match ids(&body)? {
            Some(ids) => self.told_rows(&ids, find),
            None => self.told_share(items(), items().count(), &body),
        })
    }

    fn told_rows(&self, ids: &[Id], mut find: impl FnMut(Id) -> Option<T>) -> Reply {
        let columns = Columns::of(&self.call.query);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for id in ids {
            if bytes >= TOLD {
                break;
            }
            let row = find(*id).map_or(Value::Null, |item| columns.choose((self.list.row)(&item)));
            bytes += row.to_string().len();
            rows.push(row);
        }
        Reply::json(&json!({"rows": rows}))
    }

    fn told_share(&self, items: impl Iterator<Item = T>, total: usize, body: &Map<String, Value>) -> Reply {
        let query = &self.call.query;
        let number = |name: &str| body.get(name).and_then(Value::as_u64).map(|it| it as usize);
        let limit = number("limit");
        // As on one node, lists without pages have no filter.
        let filter = Filter::of(query).filter(|_| limit.is_some());
        let passes = |item: &T| {
            filter
                .as_ref()
                .is_none_or(|it| it.matches((self.list.name)(item)))
        };
        let matching: Vec<T> = items.filter(passes).collect();
        let filtered = matching.len();
        let sort = query.get("sort");
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let first = number("first").unwrap_or(0);
        let wanted = limit.unwrap_or(usize::MAX).saturating_sub(first);
        for item in self.list.sorted(query, matching).skip(first).take(wanted) {
            if bytes >= TOLD {
                break;
            }
            // Of objects and lists nothing but their kind counts in the order.
            let key = match sort.map_or(Value::Null, |path| self.list.key(&item, path)) {
                Value::Object(_) => json!({}),
                Value::Array(_) => json!([]),
                key => key,
            };
            let entry = json!([(self.id)(&item), key]);
            bytes += entry.to_string().len();
            entries.push(entry);
        }
        Reply::json(&json!({"total": total, "filtered": filtered, "entries": entries}))
    }
}

/// The objects that another node names, if it names some.
fn ids(body: &Map<String, Value>) -> Result<Option<Vec<Id>>, Refusal> {
    let ids = body.get("ids").cloned().map(serde_json::from_value);
    ids.transpose().map_err(|_| Refusal::bad_request("ids"))
}

/// What a node says that it has.
fn share(told: &Value) -> Option<Share> {
    let number = |name: &str| told.get(name)?.as_u64().map(|it| it as usize);
    Some(Share {
        total: number("total")?,
        filtered: number("filtered")?,
        entries: serde_json::from_value(told.get("entries")?.clone()).ok()?,
    })
}
