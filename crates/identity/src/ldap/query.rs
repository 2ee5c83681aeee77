//! What a directory is asked about tags and permissions: RabbitMQ's query language, as far as it says something.

use super::facts::Variable;
use super::template::Template;

/// A question that is answered with yes or no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// `{constant, true}`.
    Constant(bool),
    /// `{exists, NAME}`: there is an object of this name.
    Exists(Template),
    /// `{in_group, NAME}`, `{in_group, NAME, ATTRIBUTE}`: the object has an attribute (`member`) with the user's name.
    InGroup {
        /// The object.
        group: Template,
        /// The attribute.
        attribute: String,
    },
    /// `{in_group_nested, NAME, ATTRIBUTE, SCOPE}`: the same, or it has one with the name of an object that does, and so on.
    InNestedGroup {
        /// The object.
        group: Template,
        /// The attribute.
        attribute: String,
        /// False if groups are looked for right below the base only.
        deep: bool,
    },
    /// `{for, [{VARIABLE, VALUE, QUERY}]}`: the first that fits decides.
    For(Vec<Case>),
    /// `{'not', QUERY}`.
    Not(Box<Query>),
    /// `{'and', QUERIES}`.
    And(Vec<Query>),
    /// `{'or', QUERIES}`.
    Or(Vec<Query>),
    /// `{equals, TEXT, TEXT}`.
    Equals(Text, Text),
    /// `{match, TEXT, EXPRESSION}`: the expression fits somewhere in the text.
    Match(Text, Text),
}

/// One of the cases of a [`Query::For`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// If this
    pub variable: Variable,
    /// is this,
    pub value: String,
    /// this decides.
    pub query: Query,
}

/// A text, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// `{string, TEXT}`, or just the text.
    Template(Template),
    /// `{attribute, NAME, ATTRIBUTE}`: the values of an object's attribute.
    Attribute {
        /// The object.
        of: Template,
        /// The attribute.
        attribute: String,
    },
}

impl Query {
    /// True if a directory must be asked.
    pub fn asks(&self) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Exists(_) | Self::InGroup { .. } | Self::InNestedGroup { .. } => true,
            Self::For(cases) => cases.iter().any(|case| case.query.asks()),
            Self::Not(query) => query.asks(),
            Self::And(queries) | Self::Or(queries) => queries.iter().any(Self::asks),
            Self::Equals(one, other) | Self::Match(one, other) => [one, other]
                .iter()
                .any(|text| matches!(text, Text::Attribute { .. })),
        }
    }

    /// True if it must be known where groups are.
    pub fn looks_for_groups(&self) -> bool {
        match self {
            Self::InNestedGroup { .. } => true,
            Self::For(cases) => cases.iter().any(|case| case.query.looks_for_groups()),
            Self::Not(query) => query.looks_for_groups(),
            Self::And(queries) | Self::Or(queries) => queries.iter().any(Self::looks_for_groups),
            _ => false,
        }
    }
}

/// All queries (`auth_ldap.queries.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queries {
    /// `vhost_access`: may they enter a virtual host?
    pub vhost: Query,
    /// `resource_access`: may they do this to a queue or an exchange?
    pub resource: Query,
    /// `topic_access`: may they do this with a routing key?
    pub topic: Query,
    /// `tags`: who has which tag.
    pub tags: Vec<(String, Query)>,
}

impl Default for Queries {
    /// RabbitMQ's: everything is permitted, and nobody has a tag.
    fn default() -> Self {
        Self {
            vhost: Query::Constant(true),
            resource: Query::Constant(true),
            topic: Query::Constant(true),
            tags: Vec::new(),
        }
    }
}

impl Queries {
    /// True if a query about permissions must ask the directory.
    pub fn permissions_ask(&self) -> bool {
        [&self.vhost, &self.resource, &self.topic]
            .into_iter()
            .any(Query::asks)
    }

    /// True if one of them must know where groups are.
    pub fn look_for_groups(&self) -> bool {
        let tags = self.tags.iter().map(|(_, query)| query);
        let all = [&self.vhost, &self.resource, &self.topic].into_iter().chain(tags);
        all.into_iter().any(Query::looks_for_groups)
    }
}
