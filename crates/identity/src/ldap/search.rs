//! What is looked for in a directory, and what is found.

use rasn_ldap::ResultCode;
use std::io::Result;

/// Where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// At the object itself.
    There,
    /// At the objects right below it.
    RightBelow,
    /// At it and everything below it.
    Below,
}

/// What must be true of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    /// Nothing.
    Anything,
    /// This attribute has this value, whatever stands in it: it is sent as a value, not as text of a filter.
    Equals(&'a str, &'a str),
}

/// A search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search<'a> {
    /// The object.
    pub base: &'a str,
    /// Where from there.
    pub scope: Scope,
    /// What is looked for.
    pub about: About<'a>,
    /// The attribute whose values are wanted.
    pub attribute: Option<&'a str>,
    /// So many objects at the most.
    pub most: usize,
}

impl<'a> Search<'a> {
    /// For the object of this name.
    pub fn of_object(name: &'a str) -> Self {
        Self {
            base: name,
            scope: Scope::There,
            about: About::Anything,
            attribute: None,
            most: 1,
        }
    }
}

/// An object of the directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// The values of the attribute that was asked for, those that are text.
    pub values: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResult {
    /// Not more than were asked for.
    pub objects: Vec<Object>,
    /// How the search ended.
    pub end: ResultCode,
}

/// Where one can search.
pub trait Searcher {
    /// Searches.
    ///
    /// # Errors
    /// There is no answer.
    fn search(&mut self, search: &Search<'_>) -> Result<SearchResult>;
}
