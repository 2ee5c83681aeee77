//! Who asks, and whether they may: HTTP's Basic scheme, or a token, then the same access function as AMQP's, then
//! RabbitMQ's tags.

use crate::options::HTTP;
use crate::refusal::Refusal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::stats::UNIX;
use broker::{Broker, User, View};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// What an asker must be for one verb of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Whoever reaches the port, without a name: probes, and who wants to know the version (as RabbitMQ).
    Anyone,
    /// Anyone who may use the API at all (the tag `management` or one that includes it).
    Management,
    /// The same, and they may enter the path's virtual host.
    Vhost,
    /// The same, or they are `monitoring`: they see what there is everywhere.
    VhostOrMonitor,
    /// `policymaker` or `administrator`, in the path's virtual host.
    Policymaker,
    /// `monitoring` or `administrator`.
    Monitor,
    /// `administrator`.
    Administrator,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A socket of the network.
    Network(SocketAddr),
    /// The admin socket: whoever may open its file operates the node.
    Operator,
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Network(address) => write!(
                f,
                "{}",
                SocketAddr::new(address.ip().to_canonical(), address.port())
            ),
            Self::Operator => f.write_str("the admin socket"),
        }
    }
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The user. An operator has the name under which RabbitMQ's command line acts.
    pub user: User,
    /// An operator is asked for no permission.
    pub operator: bool,
    /// Another node asks for them, which has looked at their rights, and for what is on this node alone.
    pub for_node: bool,
}

impl Asker {
    /// Who asks for what anyone may have.
    pub fn nobody() -> Self {
        Self {
            user: User::named(""),
            operator: false,
            for_node: false,
        }
    }
}

/// Finds out who asks. An operator who names a user becomes that user, so that passwords can be tried.
///
/// # Errors
/// Nobody said so, or the credentials are wrong for where they come from.
pub fn identify(broker: &Arc<Broker>, authorization: Option<&str>, peer: Peer) -> Result<Asker, Refusal> {
    let address = match (peer, authorization) {
        (Peer::Operator, None) => {
            let user = User {
                tags: vec!["administrator".into()],
                ..User::named("rmq-cli")
            };
            return Ok(Asker {
                user,
                operator: true,
                for_node: false,
            });
        }
        (Peer::Operator, Some(_)) => Ipv4Addr::LOCALHOST.into(),
        (Peer::Network(address), _) => address.ip(),
    };
    let (name, password) = authorization
        .and_then(|text| basic(text).or_else(|| bearer(text)))
        .ok_or(Refusal::Anonymous)?;
    let found = broker.authenticate(&name, &password, address);
    let counts = broker.stats().login_attempts();
    counts.record(HTTP.plain, address, &name, found.is_ok());
    let user = found.map_err(|refusal| {
        let peer = match peer {
            Peer::Operator => UNIX.to_owned(),
            Peer::Network(address) => address.ip().to_string(),
        };
        tracing::warn!(area = "management", %peer, "HTTP access denied: user {name:?}: {refusal}");
        Refusal::Credentials
    })?;
    Ok(Asker {
        user,
        operator: false,
        for_node: false,
    })
}

/// Checks a right. A virtual host that is not there is no refusal: that is found out by whoever looks for it.
///
/// # Errors
/// The user may not do this.
pub fn check(view: &View, user: &User, right: Right, vhost: Option<&str>) -> Result<(), Refusal> {
    let has = |tags: &[&str]| user.tags.iter().any(|tag| tags.contains(&tag.as_str()));
    let refused = |reason| Err(Refusal::not_authorised(reason));
    if right == Right::Anyone {
        return Ok(());
    }
    if !has(&["management", "policymaker", "monitoring", "administrator"]) {
        return refused("Not management user");
    }
    match right {
        Right::VhostOrMonitor if has(&["monitoring"]) => Ok(()),
        Right::Administrator if !has(&["administrator"]) => refused("Not administrator user"),
        Right::Monitor if !has(&["monitoring", "administrator"]) => refused("Not monitor user"),
        Right::Policymaker if !has(&["policymaker", "administrator"]) => {
            refused("User not authorised to access object")
        }
        Right::Vhost | Right::VhostOrMonitor | Right::Policymaker => match vhost {
            Some(vhost) if !has(&["administrator"]) && !user.enters(view, vhost) => {
                // RabbitMQ does not tell whether there is such a virtual host.
                Err(Refusal::Missing("Not Found".into()))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn basic(authorization: &str) -> Option<(String, Vec<u8>)> {
    let (scheme, rest) = authorization.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let bytes = STANDARD.decode(rest.trim()).ok()?;
    let colon = bytes.iter().position(|byte| *byte == b':')?;
    let name = std::str::from_utf8(&bytes[..colon]).ok()?;
    Some((name.to_owned(), bytes[colon + 1..].to_vec()))
}

/// The user that credentials name; a token names none that could be told without a look.
pub fn user_of(authorization: &str) -> Option<String> {
    basic(authorization).map(|(name, _)| name)
}

/// True if these credentials are a token.
pub fn is_token(authorization: &str) -> bool {
    bearer(authorization).is_some()
}

/// A token says itself whose it is.
fn bearer(authorization: &str) -> Option<(String, Vec<u8>)> {
    let (scheme, token) = authorization.split_once(' ')?;
    let token = token.trim().as_bytes().to_vec();
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| (String::new(), token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_may_have_colons_in_the_password() {
        let header = format!("basic {}", STANDARD.encode("bob:a:b"));
        assert_eq!(basic(&header), Some(("bob".into(), b"a:b".to_vec())));
        for broken in ["", "Basic", "Basic !!", "Bearer YTpi", "Basic Ym9i"] {
            assert_eq!(basic(broken), None, "{broken}");
        }
    }

    #[test]
    fn tags_give_rights_as_in_rabbitmq() {
        let view = View::default();
        let outcome = |tag: &str, right, vhost| {
            let user = User {
                tags: vec![tag.to_owned()],
                ..User::named("u")
            };
            check(&view, &user, right, vhost).map_err(|refusal| refusal.status())
        };
        use Right::{Administrator, Anyone, Management, Monitor, Policymaker, Vhost, VhostOrMonitor};
        let rights = [
            Anyone,
            Management,
            Vhost,
            VhostOrMonitor,
            Policymaker,
            Monitor,
            Administrator,
        ];
        let table = [
            ("none", [200, 401, 401, 401, 401, 401, 401]),
            ("management", [200, 200, 404, 404, 401, 401, 401]),
            ("policymaker", [200, 200, 404, 404, 404, 401, 401]),
            ("monitoring", [200, 200, 404, 200, 401, 200, 401]),
            ("administrator", [200; 7]),
        ];
        for (tag, statuses) in table {
            for (right, status) in rights.into_iter().zip(statuses) {
                let found = outcome(tag, right, Some("/")).err().unwrap_or(200);
                assert_eq!(found, status, "{tag} {right:?}");
            }
        }
    }
}
