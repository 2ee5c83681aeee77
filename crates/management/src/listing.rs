//! Lists: filter, sort, page, choose columns. Objects become JSON only if they are on the page that is asked for.

use crate::pieces::{Cut, Piece};
use crate::query::Query;
use crate::refusal::Refusal;
use crate::reply::Reply;
use regex::RegexBuilder;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;

/// The page size without a word about it, and the largest one.
const PAGE_SIZES: (usize, usize) = (100, 500);
/// How large the compiled filter of a list may become, in bytes.
const FILTER_BYTES: usize = 1 << 20;

/// How to list things of one kind.
pub struct List<'a, T> {
    /// The name that filters look at.
    pub name: &'a dyn Fn(&T) -> &str,
    /// The whole object.
    pub row: &'a dyn Fn(&T) -> Value,
    /// One member of it, if that is to be had for less than the whole.
    pub member: &'a dyn Fn(&T, &str) -> Option<Value>,
}

impl<T> List<'_, T> {
    /// Answers a request for a list, or a piece of the answer. `items` come in the order in which RabbitMQ lists them,
    /// the same ones for each piece; there are `total` of them.
    ///
    /// # Errors
    /// The page makes no sense, or lies behind the last one.
    pub fn reply(
        &self,
        query: &Query,
        cut: Cut,
        items: impl Iterator<Item = T>,
        total: usize,
    ) -> Result<Reply, Refusal> {
        let columns = Columns::of(query);
        let Some(page) = Page::of(query)? else {
            return Ok(self.all(query, cut, items, &columns));
        };
        let (filtered, on_page) = self.on_page(query, &page, items, total)?;
        let rows: Vec<Value> = on_page
            .iter()
            .map(|item| columns.choose((self.row)(item)))
            .collect();
        Ok(page.reply(rows, filtered, total))
    }

    /// How many of these objects, of which there are `total`, pass the filter, and those on the page.
    ///
    /// # Errors
    /// The page lies behind the last one.
    pub fn on_page(
        &self,
        query: &Query,
        page: &Page,
        items: impl Iterator<Item = T>,
        total: usize,
    ) -> Result<(usize, Vec<T>), Refusal> {
        let filter = Filter::of(query);
        if filter.is_none() && query.get("sort").is_none() {
            page.check(total)?;
            return Ok((total, items.skip(page.first()).take(page.size).collect()));
        }
        let wanted = |item: &T| {
            filter
                .as_ref()
                .is_none_or(|filter| filter.matches((self.name)(item)))
        };
        let matching: Vec<T> = items.filter(wanted).collect();
        let count = matching.len();
        page.check(count)?;
        let sorted = self.sorted(query, matching);
        Ok((count, sorted.skip(page.first()).take(page.size).collect()))
    }

    /// What an object is sorted by.
    pub fn key(&self, item: &T, path: &str) -> Value {
        let key = (self.member)(item, path);
        key.unwrap_or_else(|| at(&(self.row)(item), path).cloned().unwrap_or(Value::Null))
    }

    /// Everything, one object after the other, so that only their text takes memory.
    fn all(&self, query: &Query, cut: Cut, items: impl Iterator<Item = T>, columns: &Columns) -> Reply {
        let row = |item: &T| columns.choose((self.row)(item));
        let is_sorted = query.get("sort").is_some();
        // What is sorted has to be there as a whole first.
        let mut piece = Piece::of(if is_sorted { Cut::Whole } else { cut });
        let given = match is_sorted {
            false => piece.rows(items, row),
            true => piece.rows(self.sorted(query, items.collect()), row),
        };
        Reply::piece(piece.end(given))
    }

    /// By the member that is asked for, else as they came. What lacks the member comes first, as Erlang's `undefined` does.
    pub fn sorted(&self, query: &Query, items: Vec<T>) -> impl Iterator<Item = T> + use<T> {
        let mut keyed: Vec<(Value, T)> = match query.get("sort") {
            None => items.into_iter().map(|item| (Value::Null, item)).collect(),
            Some(path) => items
                .into_iter()
                .map(|item| (self.key(&item, path), item))
                .collect(),
        };
        if query.get("sort").is_some() {
            keyed.sort_by(|(a, _), (b, _)| compare(a, b));
            if query.flag("sort_reverse") {
                keyed.reverse();
            }
        }
        keyed.into_iter().map(|(_, item)| item)
    }
}

/// Answers a request for one object.
pub fn object(query: &Query, value: Value) -> Reply {
    Reply::json(&Columns::of(query).choose(value))
}

/// Which part of a list is asked for.
pub struct Page {
    number: usize,
    /// So many objects are on it at the most.
    pub size: usize,
}

impl Page {
    /// The page that a query asks for, if it asks for one.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn of(query: &Query) -> Result<Option<Self>, Refusal> {
        let Some(number) = query.get("page") else {
            return Ok(None);
        };
        let whole = |text: &str| {
            let unreadable = |_| Refusal::bad_request("Pagination parameters are invalid");
            text.parse::<i64>().map_err(unreadable)
        };
        let number = whole(number)?;
        let size = query.get("page_size").map(whole).transpose()?;
        let in_range = number >= 1 && size.is_none_or(|size| (1..=PAGE_SIZES.1 as i64).contains(&size));
        if !in_range {
            let size = size.map_or("undefined".to_owned(), |size| size.to_string());
            return Err(Refusal::Invalid(
                "invalid_pagination_parameters",
                format!("Invalid pagination parameters: page number {number}, page size {size}"),
            ));
        }
        Ok(Some(Self {
            number: number as usize,
            size: size.map_or(PAGE_SIZES.0, |size| size as usize),
        }))
    }

    /// The answer: these rows of so many that pass the filter, of so many.
    pub fn reply(&self, rows: Vec<Value>, filtered: usize, total: usize) -> Reply {
        Reply::json(&json!({
            "filtered_count": filtered,
            "item_count": rows.len(),
            "items": rows,
            "page": self.number,
            "page_count": filtered.div_ceil(self.size),
            "page_size": self.size,
            "total_count": total,
        }))
    }

    /// So many objects are before it.
    pub fn first(&self) -> usize {
        (self.number - 1).saturating_mul(self.size)
    }

    /// # Errors
    /// It is behind the last of so many objects.
    pub fn check(&self, count: usize) -> Result<(), Refusal> {
        if self.number == 1 || self.first() < count {
            return Ok(());
        }
        Err(Refusal::Invalid(
            "page_out_of_range",
            format!(
                "Page out of range, page: {} page size: {}, len: {count}",
                self.number, self.size
            ),
        ))
    }
}

/// Which names are asked for; upper and lower case count the same.
pub enum Filter {
    Part(String),
    Pattern(regex::Regex),
    /// The expression makes no sense: RabbitMQ shows nothing.
    Nothing,
}

impl Filter {
    /// The one that a query has, if it has one.
    pub fn of(query: &Query) -> Option<Self> {
        let text = query.get("name").filter(|text| !text.is_empty())?;
        if !query.flag("use_regex") {
            return Some(Self::Part(text.to_lowercase()));
        }
        let pattern = RegexBuilder::new(text)
            .case_insensitive(true)
            .size_limit(FILTER_BYTES)
            .build();
        Some(pattern.map_or(Self::Nothing, Self::Pattern))
    }

    /// True if it lets this name pass.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Part(part) => name.to_lowercase().contains(part),
            Self::Pattern(pattern) => pattern.is_match(name),
            Self::Nothing => false,
        }
    }
}

/// Which members are asked for: all, or some by dotted path.
pub struct Columns(Option<Vec<String>>);

impl Columns {
    /// Those that a query asks for.
    pub fn of(query: &Query) -> Self {
        let columns = query.get("columns").filter(|text| !text.is_empty());
        Self(columns.map(|text| text.split(',').map(str::to_owned).collect()))
    }

    /// What of an object is asked for.
    pub fn choose(&self, value: Value) -> Value {
        let Some(paths) = &self.0 else {
            return value;
        };
        let mut chosen = Map::new();
        for path in paths {
            if let Some(found) = at(&value, path) {
                put(&mut chosen, path, found.clone());
            }
        }
        Value::Object(chosen)
    }
}

/// The member at a dotted path.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

fn put(map: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            map.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = map.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Erlang's order of terms: numbers, words, objects, lists, text.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::Null | Value::Bool(_) => 1,
        Value::Object(_) => 2,
        Value::Array(_) => 3,
        Value::String(_) => 4,
    };
    rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
            a.total_cmp(&b)
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => Ordering::Equal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn ask(query: &str, made: &Cell<usize>) -> Result<Value, Refusal> {
        let items: Vec<String> = (0..250).map(|at| format!("q{at:03}")).collect();
        let list = List {
            name: &|item: &String| item.as_str(),
            row: &|item: &String| {
                made.set(made.get() + 1);
                json!({"name": item, "n": {"rate": 250 - item[1..].parse::<i64>().unwrap()}})
            },
            member: &|_, _| None,
        };
        let reply = list.reply(&Query::parse(query), Cut::Whole, items.into_iter(), 250)?;
        Ok(serde_json::from_slice(&reply.body.unwrap()).unwrap())
    }

    #[test]
    fn a_page_makes_no_more_objects_than_it_shows() {
        let made = Cell::new(0);
        let page = ask("page=2&page_size=10", &made).unwrap();
        assert_eq!(made.get(), 10);
        assert_eq!(page["items"][0]["name"], "q010");
        let counts = [
            "filtered_count",
            "item_count",
            "page",
            "page_count",
            "page_size",
            "total_count",
        ];
        let found: Vec<_> = counts.iter().map(|name| page[name].as_i64().unwrap()).collect();
        assert_eq!(found, [250, 10, 2, 25, 10, 250]);
        let page = ask("page=1&name=Q01&page_size=5", &made).unwrap();
        assert_eq!((page["filtered_count"].as_i64(), made.get()), (Some(10), 15));
    }

    #[test]
    fn lists_are_sorted_by_any_member_and_show_the_columns_asked_for() {
        let made = Cell::new(0);
        let rows = ask("sort=n.rate&columns=n.rate", &made).unwrap();
        assert_eq!(rows[0], json!({"n": {"rate": 1}}));
        let rows = ask("sort=name&sort_reverse=true&columns=name,zork", &made).unwrap();
        assert_eq!(rows[0], json!({"name": "q249"}));
        let page = ask(
            "page=1&name=^q00[12]$&use_regex=true&sort=n.rate&columns=name",
            &made,
        )
        .unwrap();
        assert_eq!(page["items"], json!([{"name": "q002"}, {"name": "q001"}]));
        assert_eq!(
            ask("page=1&name=(&use_regex=true", &made).unwrap()["item_count"],
            0
        );
    }

    #[test]
    fn senseless_pages_are_refused_in_rabbitmqs_words() {
        let made = Cell::new(0);
        let refused = |query: &str| ask(query, &made).unwrap_err().body().unwrap();
        assert_eq!(refused("page=x")["reason"], "Pagination parameters are invalid");
        assert_eq!(
            refused("page=0"),
            json!({"error": "invalid_pagination_parameters",
                "reason": "Invalid pagination parameters: page number 0, page size undefined"})
        );
        assert_eq!(
            refused("page=1&page_size=501")["reason"],
            "Invalid pagination parameters: page number 1, page size 501"
        );
        assert_eq!(
            refused("page=9&page_size=100"),
            json!({"error": "page_out_of_range", "reason": "Page out of range, page: 9 page size: 100, len: 250"})
        );
    }
}
