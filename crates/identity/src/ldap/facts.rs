//! What a question to a directory is about, by the names that queries call it.

use crate::question::{AccessQuestion, Action};
use crate::verdict::Denied;

/// A name between `${` and `}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `username`: the name that they logged in with.
    Username,
    /// `user_dn`: their name in the directory.
    UserDn,
    /// `ad_domain`: what stands before the backslash of their name.
    AdDomain,
    /// `ad_user`: what stands behind it.
    AdUser,
    /// `vhost`.
    Vhost,
    /// `resource`: `queue`, `exchange` or `topic`.
    Resource,
    /// `name`: of the queue or exchange.
    Name,
    /// `permission`: `configure`, `write` or `read`.
    Permission,
    /// `routing_key`.
    RoutingKey,
    /// `variable_map.username`: RabbitMQ has these two beside the routing key.
    MapUsername,
    /// `variable_map.vhost`.
    MapVhost,
}

use Variable::{
    AdDomain, AdUser, MapUsername, MapVhost, Name, Permission, Resource, RoutingKey, UserDn, Username, Vhost,
};

/// Where a text with variables is filled in. More is known the later it is: each knows what those before it know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Occasion {
    /// While a name in the directory is put together.
    ForName,
    /// At a login.
    AtLogin,
    /// When a virtual host is entered.
    ForVhost,
    /// When something is done to a queue or an exchange.
    ForResource,
    /// When a routing key is used.
    ForTopic,
}

use Occasion::{AtLogin, ForName, ForResource, ForTopic, ForVhost};

/// The names, and from when on each variable is known.
const NAMES: [(&str, Variable, Occasion); 11] = [
    ("username", Username, ForName),
    ("user_dn", UserDn, AtLogin),
    ("ad_domain", AdDomain, ForName),
    ("ad_user", AdUser, ForName),
    ("vhost", Vhost, ForVhost),
    ("resource", Resource, ForResource),
    ("name", Name, ForResource),
    ("permission", Permission, ForResource),
    ("routing_key", RoutingKey, ForTopic),
    ("variable_map.username", MapUsername, ForTopic),
    ("variable_map.vhost", MapVhost, ForTopic),
];

impl Variable {
    /// The variable of this name, if it is known there.
    ///
    /// # Errors
    /// A sentence with the names of those that are.
    pub fn named(name: &str, asked: Occasion) -> Result<Self, String> {
        let known = || NAMES.iter().filter(|(_, _, since)| *since <= asked);
        let found = known().find(|(it, ..)| *it == name);
        found.map(|(_, variable, _)| *variable).ok_or_else(|| {
            let known: Vec<&str> = known().map(|(name, ..)| *name).collect();
            format!("'{name}' is not known here; {} are", known.join(", "))
        })
    }
}

/// The values of the variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    values: Vec<(Variable, String)>,
}

impl Facts {
    /// About somebody who logs in.
    pub fn of_user(user: &str) -> Self {
        let mut values = vec![(Username, user.to_owned())];
        // Active Directory's form: DOMAIN\USER.
        if let Some((domain, name)) = user.split_once('\\')
            && !domain.is_empty()
            && !name.is_empty()
        {
            values.extend([(AdDomain, domain.to_owned()), (AdUser, name.to_owned())]);
        }
        Self { values }
    }

    /// The same, once their name in the directory is known.
    pub fn known_as(mut self, name: &str) -> Self {
        self.values.push((UserDn, name.to_owned()));
        self
    }

    /// The same, and what they want to do.
    ///
    /// # Errors
    /// It can't be said in text.
    pub fn about(mut self, question: &AccessQuestion) -> Result<Self, Denied> {
        let vhost = question.vhost.clone();
        let user = self.get(Username).unwrap_or_default().to_owned();
        match &question.action {
            Action::Enter => {}
            Action::Object { verb, kind, name } => self.values.extend([
                (Resource, kind.to_string()),
                (Name, name.clone()),
                (Permission, verb.to_string()),
            ]),
            Action::Key { verb, exchange, key } => self.values.extend([
                (Resource, "topic".into()),
                (Name, exchange.clone()),
                (Permission, verb.to_string()),
                (RoutingKey, crate::question::text_of_key(key)?.to_owned()),
                (MapUsername, user),
                (MapVhost, vhost.clone()),
            ]),
        }
        self.values.push((Vhost, vhost));
        Ok(self)
    }

    /// The value of a variable; `None` if it has none here.
    pub fn get(&self, variable: Variable) -> Option<&str> {
        let mut values = self.values.iter();
        let found = values.find(|(it, _)| *it == variable);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_active_directory_has_two_parts() {
        let parts = |user: &str| {
            let facts = Facts::of_user(user);
            [AdDomain, AdUser].map(|variable| facts.get(variable).map(str::to_owned))
        };
        assert_eq!(parts("SHOP\\jane"), [Some("SHOP".into()), Some("jane".into())]);
        for plain in ["jane", "\\jane", "SHOP\\", ""] {
            assert_eq!(parts(plain), [None, None], "{plain}");
        }
    }

    #[test]
    fn what_is_not_known_to_a_query_is_refused_with_what_is() {
        assert_eq!(Variable::named("vhost", ForVhost), Ok(Vhost));
        let error = Variable::named("vhost", AtLogin).unwrap_err();
        assert_eq!(
            error,
            "'vhost' is not known here; username, user_dn, ad_domain, ad_user are"
        );
    }
}
