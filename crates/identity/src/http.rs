//! A service of the operator's that knows passwords and permissions, asked over HTTP (RabbitMQ's `rabbitmq_auth_backend_http`).

use crate::question::{AccessQuestion, Action, Person, text_of_key};
use crate::tls::Trust;
use crate::verdict::Denied;
use crate::web;
use broker::access::{Attempt, Verb};
use std::time::Duration;
use ureq::Agent;

/// The words that a service answers with are short; what is longer, in bytes, is no answer.
const LONGEST: u64 = 64 * 1024;

/// How the service is asked (`auth_http.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// `user_path`: the address that is asked about a user.
    pub user_path: String,
    /// `vhost_path`, `resource_path` and `topic_path`: those that are asked about permissions.
    pub vhost_path: String,
    /// See there.
    pub resource_path: String,
    /// See there.
    pub topic_path: String,
    /// `http_method`: by a form in the body instead of behind the question mark, where proxies log it.
    pub posts: bool,
    /// `request_timeout`: how long an answer may take in all.
    pub request_timeout: Duration,
    /// `connection_timeout`: how long a connection may take of that.
    pub connection_timeout: Duration,
    /// `ssl_options.cacertfile`: how the service is known.
    pub trust: Trust,
}

impl Default for HttpSettings {
    /// RabbitMQ's defaults, but for the address.
    fn default() -> Self {
        Self {
            user_path: String::new(),
            vhost_path: String::new(),
            resource_path: String::new(),
            topic_path: String::new(),
            posts: false,
            request_timeout: Duration::from_secs(15),
            connection_timeout: Duration::from_secs(15),
            trust: Trust::default(),
        }
    }
}

/// The service.
#[derive(Debug)]
pub struct HttpService {
    settings: HttpSettings,
    agent: Agent,
}

impl HttpService {
    /// Reads the authorities by which the service is known. It is asked when somebody logs in.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub fn open(settings: HttpSettings) -> Result<Self, String> {
        if settings.user_path.is_empty() {
            return Err(
                "auth_http.user_path must be set: it is the address that is asked about passwords".into(),
            );
        }
        let agent = web::agent_within(
            &settings.trust,
            settings.request_timeout,
            settings.connection_timeout,
        )?;
        Ok(Self { settings, agent })
    }

    /// True if it can be asked about permissions, too.
    ///
    /// # Errors
    /// A sentence that names the setting that is missing.
    pub fn check_authorizes(&self) -> Result<(), String> {
        let settings = &self.settings;
        let paths = [
            ("vhost_path", &settings.vhost_path),
            ("resource_path", &settings.resource_path),
            ("topic_path", &settings.topic_path),
        ];
        match paths.iter().find(|(_, path)| path.is_empty()) {
            None => Ok(()),
            Some((key, _)) => Err(format!(
                "auth_http.{key} must be set: it is an address that is asked about permissions                  (or set auth_backends.NUMBER.authz = internal)"
            )),
        }
    }

    /// The tags of a user whom the service lets in. Takes its time.
    ///
    /// # Errors
    /// It doesn't, or gives no answer that means something; the password is in no text.
    pub fn login(&self, attempt: &Attempt) -> Result<Vec<String>, Denied> {
        let password = match &attempt.password {
            None => None,
            Some(bytes) => Some(std::str::from_utf8(bytes).map_err(|_| {
                Denied::Refused("the password is not UTF-8, so the service cannot be asked about it".into())
            })?),
        };
        let mut fields = vec![("username", attempt.user.as_str())];
        fields.extend(password.map(|password| ("password", password)));
        self.ask("user_path", &self.settings.user_path, fields)
    }

    /// Whether somebody may do something, in the words of RabbitMQ's backend. Takes its time.
    ///
    /// # Errors
    /// They may not, or the service gives no answer that means something.
    pub fn permits(&self, person: &Person, question: &AccessQuestion) -> Result<(), Denied> {
        let (tags, ip) = (person.tags.join(" "), person.peer.to_canonical().to_string());
        let (name, vhost) = (person.name.as_str(), question.vhost.as_str());
        let mut fields = vec![("username", name), ("vhost", vhost), ("tags", tags.as_str())];
        let (words, settings) = (|verb: &Verb| verb.to_string(), &self.settings);
        let (verb, kind);
        let (key, address) = match &question.action {
            Action::Enter => {
                fields.push(("ip", &ip));
                ("vhost_path", &settings.vhost_path)
            }
            Action::Object {
                verb: of,
                kind: what,
                name,
            } => {
                (verb, kind) = (words(of), what.to_string());
                fields.extend([
                    ("resource", kind.as_str()),
                    ("name", name),
                    ("permission", verb.as_str()),
                ]);
                ("resource_path", &settings.resource_path)
            }
            Action::Key {
                verb: of,
                exchange,
                key,
            } => {
                let key = text_of_key(key)?;
                verb = words(of);
                fields.extend([
                    ("resource", "topic"),
                    ("name", exchange),
                    ("permission", verb.as_str()),
                ]);
                fields.extend([
                    ("routing_key", key),
                    ("variable_map.username", name),
                    ("variable_map.vhost", vhost),
                ]);
                ("topic_path", &settings.topic_path)
            }
        };
        let tags = self.ask(key, address, fields)?;
        match tags.is_empty() {
            true => Ok(()),
            false => Err(unanswered(
                key,
                address,
                "answers a question about a permission with tags",
            )),
        }
    }

    fn ask(&self, key: &str, address: &str, fields: Vec<(&str, &str)>) -> Result<Vec<String>, Denied> {
        let unanswered = |why: String| unanswered(key, address, &why);
        let sent = match self.settings.posts {
            true => self.agent.post(address).send_form(fields),
            false => self.agent.get(address).query_pairs(fields).call(),
        };
        let mut answer =
            sent.map_err(|error| unanswered(format!("can't be asked: {}", web::said(&error))))?;
        let status = answer.status().as_u16();
        if !matches!(status, 200 | 201) {
            return Err(unanswered(format!("answers with status {status}")));
        }
        let text = answer.body_mut().with_config().limit(LONGEST).read_to_string();
        let text = text.map_err(|error| unanswered(format!("can't be read: {}", web::said(&error))))?;
        verdict(&text).unwrap_or_else(|| Err(unanswered("answers neither 'allow' nor 'deny'".into())))
    }
}

fn unanswered(key: &str, address: &str, why: &str) -> Denied {
    Denied::Unanswered(format!(
        "{address} {why}; it permits nothing until it answers (auth_http.{key})"
    ))
}

/// What an answer says: `allow`, with tags behind it, or `deny`, with a reason behind it.
fn verdict(text: &str) -> Option<Result<Vec<String>, Denied>> {
    let mut words = text.split_ascii_whitespace();
    match words.next()?.to_ascii_lowercase().trim_end_matches(':') {
        "allow" => Some(Ok(words.map(str::to_owned).collect())),
        "deny" => Some(Err(Denied::Refused("the service denies it".into()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_word_and_perhaps_tags() {
        assert_eq!(verdict("allow"), Some(Ok(vec![])));
        assert_eq!(
            verdict("Allow administrator management\n"),
            Some(Ok(vec!["administrator".to_owned(), "management".to_owned()]))
        );
        assert!(matches!(verdict("deny"), Some(Err(Denied::Refused(_)))));
        assert!(matches!(verdict("DENY: banned"), Some(Err(Denied::Refused(_)))));
        for nonsense in ["", " ", "allowed", "<html>allow</html>", "yes"] {
            assert_eq!(verdict(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_service_without_an_address_is_refused() {
        assert!(HttpService::open(HttpSettings::default()).is_err());
    }
}
