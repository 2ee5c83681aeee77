//! The part of an address after the question mark.

use crate::text::decode;

/// Named values, the first of a name counts.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads a query; what is not encoded rightly is left out.
    pub fn parse(text: &str) -> Self {
        let pairs = text
            .split('&')
            .filter(|pair| !pair.is_empty())
            .filter_map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((decode(name, true)?, decode(value, true)?))
            });
        Self {
            pairs: pairs.collect(),
        }
    }

    /// These names with their values.
    pub fn of(pairs: Vec<(String, String)>) -> Self {
        Self { pairs }
    }

    /// All names with their values, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.pairs.iter();
        pairs
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// All values of a name.
    pub fn all<'q>(&'q self, name: &str) -> impl Iterator<Item = &'q str> {
        let pairs = self.pairs.iter().filter(|(known, _)| known == name);
        let values: Vec<&str> = pairs.map(|(_, value)| value.as_str()).collect();
        values.into_iter()
    }

    /// True if the value is `true`.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_browsers_write_it() {
        let query = Query::parse("a=1&b=x+y%2F&c&a=2&%zz=3");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.get("b"), Some("x y/"));
        assert_eq!(query.get("c"), Some(""));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert!(!query.flag("a") && Query::parse("a=true").flag("a"));
    }
}
