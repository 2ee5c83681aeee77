//! Making what a document of definitions says: all of it, or nothing.
//!
//! Each object is tried on a copy of what exists ([`broker::Draft`]). So one look finds everything that would be
//! refused, by the same rules as the import itself, and an import that is refused has changed nothing.

use crate::arguments::{self, boolean, text};
use crate::existing;
use crate::import_mark::{imported_mark, is_mark, put_mark};
use crate::import_options::CONVERTED_FROM;
use crate::import_options::ImportOptions;
use crate::import_report::{Cause, ImportedObject, Outcome, Remark, Report};
use crate::json;
use crate::limits;
use crate::parameters;
use crate::policies;
use crate::refusal::Refusal;
use crate::topic_permissions;
use crate::unsupported::{self, Fit};
use crate::users::{self, hash_of, tags};
use crate::vhosts;
use broker::{
    Administrator, DeclareExchange, DeclareQueue, Destination, Draft, Permissions, PolicyKind, QueueKind,
    QuotaOf, View,
};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often an import that is to be made once is tried while nobody decides.
const TRIES: usize = 5;

/// What is to be imported, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportRequest<'a> {
    /// Only exchanges, queues, bindings, policies and parameters are looked at, and made in this virtual host.
    pub vhost: Option<&'a str>,
    /// Who may do everything in the virtual hosts that are new.
    pub asker: Option<&'a str>,
    /// What is done about what this version does not have.
    pub options: ImportOptions,
}

/// Why nothing was imported.
#[derive(Debug)]
pub enum Unimported {
    /// The document in this place is no JSON object; or a part of it is no list.
    Unreadable(usize, String),
    /// The one in this place has objects that are refused.
    Refused(usize, Box<Report>),
    /// The log failed.
    Failed(String),
}

impl Unimported {
    /// Which document it is about.
    pub fn place(&self) -> Option<usize> {
        match self {
            Self::Unreadable(place, _) | Self::Refused(place, _) => Some(*place),
            Self::Failed(_) => None,
        }
    }
}

impl std::fmt::Display for Unimported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(_, reason) | Self::Failed(reason) => f.write_str(reason),
            Self::Refused(_, report) => f.write_str(&report.refusals()),
        }
    }
}

impl From<broker::Refusal> for Unimported {
    fn from(refusal: broker::Refusal) -> Self {
        Self::Failed(refusal.to_string())
    }
}

/// Makes what documents of definitions say, one after the other, in the order in which objects need each other.
/// Exchanges and queues that exist stay as they are, as in RabbitMQ. Returns what became of the objects of each.
///
/// # Errors
/// One of them can't be read, or an object is refused: then nothing was changed.
pub fn import(
    by: &Administrator<'_>,
    documents: &[&[u8]],
    asked: ImportRequest<'_>,
) -> Result<Vec<Report>, Unimported> {
    let read = all_parsed(documents)?;
    by.all_or_nothing(|by, draft| drawn(by, draft, &read, asked))
}

/// The same, unless it has this mark and so had what was imported last, on whatever node: then nothing is made, and there are no
/// reports. The mark is the last thing that is made, so what was imported in part has none and is imported again: here, too,
/// since nobody may have decided for a moment, or somebody may have come in between two parts.
///
/// # Errors
/// As above.
pub fn import_once(
    by: &Administrator<'_>,
    documents: &[&[u8]],
    asked: ImportRequest<'_>,
    mark: &str,
) -> Result<Option<Vec<Report>>, Unimported> {
    let read = all_parsed(documents)?;
    let try_it = || {
        by.all_or_nothing(|by, draft| {
            if imported_mark(&by.view()).as_deref() == Some(mark) {
                return Ok(None);
            }
            let reports = drawn(by, draft, &read, asked)?;
            put_mark(by, mark).map_err(Unimported::Failed)?;
            Ok(Some(reports))
        })
    };
    let mut imported = try_it();
    for _ in 1..TRIES {
        if !matches!(imported, Err(Unimported::Failed(_))) {
            break;
        }
        imported = try_it();
    }
    imported
}

fn all_parsed(documents: &[&[u8]]) -> Result<Vec<Map<String, Value>>, Unimported> {
    let one = |(place, document): (usize, &&[u8])| {
        parsed(document).map_err(|reason| Unimported::Unreadable(place, reason))
    };
    documents.iter().enumerate().map(one).collect()
}

/// Draws all documents on a draft.
fn drawn(
    by: &Administrator<'_>,
    draft: &Mutex<Draft>,
    read: &[Map<String, Value>],
    asked: ImportRequest<'_>,
) -> Result<Vec<Report>, Unimported> {
    let mut reports = Vec::new();
    for (place, document) in read.iter().enumerate() {
        let report =
            tried(by, draft, document, asked).map_err(|reason| Unimported::Unreadable(place, reason))?;
        if !report.is_importable() {
            return Err(Unimported::Refused(place, Box::new(report)));
        }
        reports.push(report);
    }
    Ok(reports)
}

/// What an import of this document would do. Nothing is changed.
///
/// # Errors
/// The document is no JSON object, or a part of it is no list.
pub fn check(by: &Administrator<'_>, document: &[u8], asked: ImportRequest<'_>) -> Result<Report, String> {
    let document = parsed(document)?;
    let mut found = Err(String::new());
    let nothing = by.all_or_nothing(|by, draft| {
        found = tried(by, draft, &document, asked);
        // Whatever it is, it is not to be made.
        Err::<(), _>(Unimported::Failed(String::new()))
    });
    debug_assert!(nothing.is_err());
    found
}

fn parsed(document: &[u8]) -> Result<Map<String, Value>, String> {
    match document.is_empty() {
        true => Ok(Map::new()),
        false => match serde_json::from_slice(document) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) => Err("not_json".into()),
            Err(error) => Err(format!("not_json: {error}")),
        },
    }
}

fn tried(
    by: &Administrator<'_>,
    draft: &Mutex<Draft>,
    document: &Map<String, Value>,
    asked: ImportRequest<'_>,
) -> Result<Report, String> {
    let mut import = Import {
        by,
        draft,
        asked,
        absent: HashSet::new(),
        report: Report::default(),
    };
    import.all(document)?;
    Ok(import.report)
}

/// What an object may need, by kind, virtual host and name.
type Needed = (&'static str, String, String);

struct Import<'a> {
    by: &'a Administrator<'a>,
    draft: &'a Mutex<Draft>,
    asked: ImportRequest<'a>,
    /// What was refused or left out.
    absent: HashSet<Needed>,
    report: Report,
}

/// One class of objects.
struct Class<'a> {
    name: &'static str,
    /// The member by which an object is told from others.
    key: &'static str,
    /// It is of the whole node, not of one virtual host.
    of_the_whole: bool,
    make: Step<'a>,
}

/// Makes an object, in view of what existed before it.
type Step<'a> = fn(&Import<'a>, &View, &Map<String, Value>) -> Result<(), Refusal>;

/// All classes, in the order in which they need each other.
fn classes<'a>() -> [Class<'a>; 10] {
    let class = |name, key, of_the_whole, make: Step<'a>| Class {
        name,
        key,
        of_the_whole,
        make,
    };
    [
        class("users", "name", true, Import::user),
        class("vhosts", "name", true, Import::virtual_host),
        class("permissions", "user", true, Import::permission),
        class("global_parameters", "name", true, Import::global),
        class("policies", "name", false, Import::policy),
        class("parameters", "name", false, Import::parameter),
        class("exchanges", "name", false, Import::exchange),
        class("topic_permissions", "user", true, Import::topic_permission),
        class("queues", "name", false, Import::queue),
        class("bindings", "source", false, Import::binding),
    ]
}

impl<'a> Import<'a> {
    fn all(&mut self, document: &Map<String, Value>) -> Result<(), String> {
        for class in &classes() {
            if self.asked.vhost.is_some() && class.of_the_whole {
                continue;
            }
            let objects = objects(document, class.name)?;
            if document.contains_key(class.name) {
                self.report.counts(class.name);
            }
            for (index, object) in objects.iter().enumerate() {
                let place = self.place(class, index, object);
                match object {
                    Value::Object(object) => self.one(class, &place, object),
                    _ => self.refuse(
                        &place,
                        Remark::new(Outcome::Refused, Cause::Invalid, "not an object"),
                    ),
                }
            }
        }
        Ok(())
    }

    fn place(&self, class: &Class<'a>, index: usize, object: &Value) -> ImportedObject {
        let member = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        let own = member("vhost").filter(|_| class.name != "vhosts");
        ImportedObject {
            class: class.name,
            index,
            vhost: self.asked.vhost.map(str::to_owned).or(own),
            name: member(class.key).unwrap_or_default(),
            destination: member("destination").filter(|_| class.name == "bindings"),
        }
    }

    /// Tries one object, and says what becomes of it.
    fn one(&mut self, class: &Class<'a>, place: &ImportedObject, object: &Map<String, Value>) {
        let view = self.draft().view();
        if let Some(difference) = self.difference(class.name, &view, object) {
            self.report.counts(class.name).known += 1;
            return match difference.as_str() {
                "" => {}
                field => self.report.say(place, existing::kept(field)),
            };
        }
        if let Some((kind, _, name)) = needs(place, object)
            .into_iter()
            .find(|it| self.absent.contains(it))
        {
            let outcome = match self.asked.options.skip_unsupported {
                true => Outcome::Skipped,
                false => Outcome::Refused,
            };
            let word = if outcome == Outcome::Skipped {
                "left out"
            } else {
                "refused"
            };
            let reason = format!("it needs the {kind} '{name}', which is {word}");
            return self.refuse(place, Remark::new(outcome, Cause::Missing, reason));
        }
        let (object, converted) = match unsupported::fit(class.name, object, self.asked.options) {
            Fit::Same => (object.clone(), None),
            Fit::Converted(object, remark) => (object, Some(remark)),
            Fit::No(mut remark) => {
                if self.asked.options.skip_unsupported {
                    remark.outcome = Outcome::Skipped;
                }
                return self.refuse(place, remark);
            }
        };
        let mark = self.draft().mark();
        match (class.make)(self, &view, &object) {
            Err(refusal) => {
                self.draft().back_to(mark);
                self.refuse(place, explained(&refusal));
            }
            Ok(()) => {
                let is_new = self.draft().has_changed(&mark);
                let as_quorum = match is_new && class.name == "queues" {
                    true => self.as_quorum(&object),
                    false => None,
                };
                let is_quorum = as_quorum
                    .as_ref()
                    .is_some_and(|it| it.outcome == Outcome::Converted);
                let counts = self.report.counts(class.name);
                match (converted.is_some() || is_quorum, is_new) {
                    (true, _) => counts.converted += 1,
                    (false, true) => counts.new += 1,
                    (false, false) => counts.known += 1,
                }
                let note = unsupported::note(class.name, &object);
                for remark in converted.into_iter().chain(note).chain(as_quorum) {
                    self.report.say(place, remark);
                }
            }
        }
    }

    /// It is not made, so nothing that needs it is.
    fn refuse(&mut self, place: &ImportedObject, remark: Remark) {
        let counts = self.report.counts(place.class);
        match remark.outcome {
            Outcome::Skipped => counts.skipped += 1,
            _ => counts.refused += 1,
        }
        let kind = match place.class {
            "users" => Some("user"),
            "vhosts" => Some("virtual host"),
            "exchanges" => Some("exchange"),
            "queues" => Some("queue"),
            _ => None,
        };
        if let Some(kind) = kind {
            let vhost = place.vhost.clone().unwrap_or_default();
            self.absent.insert((kind, vhost, place.name.clone()));
        }
        self.report.say(place, remark);
    }

    fn draft(&self) -> MutexGuard<'_, Draft> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For an exchange or a queue that is there already: the first setting that differs; empty if none does.
    fn difference(&self, class: &str, view: &View, object: &Map<String, Value>) -> Option<String> {
        let name = object.get("name").and_then(Value::as_str)?;
        let vhost = self.vhost_of(object).ok()?;
        match class {
            "exchanges" if is_of_the_server(name) => Some(String::new()),
            "exchanges" => Some(existing::of_exchange(view.exchange(vhost, name)?, object)),
            "queues" => Some(existing::of_queue(view.queue(vhost, name)?, object)),
            _ => None,
        }
    }

    fn user(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let name = needed(object, "name")?;
        users::refuse_two_passwords(object)?;
        let tags = tags(
            object
                .get("tags")
                .ok_or_else(|| Refusal::bad_request("tags_not_present"))?,
        )?;
        let password = match (text(object, "password")?, text(object, "password_hash")?) {
            (_, Some(hash)) if !hash.is_empty() => Some(hash_of(object, hash)?),
            (Some(password), _) => Some(self.by.broker().hash_password(password.as_bytes())?),
            _ => None,
        };
        let known = view.user(name);
        if !known.is_some_and(|known| known.tags == tags && known.password() == password.as_ref()) {
            self.by.put_user(name, password, tags)?;
        }
        self.limits(QuotaOf::User(name.into()), object)
    }

    fn virtual_host(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let name = needed(object, "name")?;
        // RabbitMQ 3.8 had the members of `metadata` beside the name.
        let said = object
            .get("metadata")
            .and_then(Value::as_object)
            .unwrap_or(object);
        let protected = boolean(said, "protected_from_deletion")?;
        let metadata = vhosts::metadata(said, protected)?;
        if view.vhost(name).is_none() {
            self.by.create_vhost(name)?;
            if let Some(asker) = self.asked.asker {
                self.by.set_permissions(asker, name, Permissions::all())?;
            }
        }
        if self
            .by
            .view()
            .vhost(name)
            .is_some_and(|known| *known.metadata() != metadata)
        {
            self.by.describe_vhost(name, metadata)?;
        }
        self.limits(QuotaOf::Vhost(name.into()), object)
    }

    fn permission(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (user, vhost) = (needed(object, "user")?, needed(object, "vhost")?);
        let permissions = Permissions {
            configure: needed(object, "configure")?.to_owned(),
            write: needed(object, "write")?.to_owned(),
            read: needed(object, "read")?.to_owned(),
        };
        let same = view.permission(user, vhost).is_some_and(|known| {
            let sources = [&known.configure, &known.write, &known.read].map(|pattern| pattern.source());
            sources == [&permissions.configure, &permissions.write, &permissions.read]
        });
        match same {
            true => Ok(()),
            false => Ok(self.by.set_permissions(user, vhost, permissions)?),
        }
    }

    fn policy(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (name, vhost) = (needed(object, "name")?, self.vhost_of(object)?);
        policies::make(self.by, vhost, PolicyKind::User, name, object)
    }

    fn parameter(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (name, vhost) = (needed(object, "name")?, self.vhost_of(object)?);
        let value = object.get("value").unwrap_or(&Value::Null);
        parameters::make(self.by, vhost, needed(object, "component")?, name, value)
    }

    fn global(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let value = object.get("value").unwrap_or(&Value::Null);
        match needed(object, "name")? {
            // Who a cluster is is no setting.
            broker::CLUSTER_ID => Ok(()),
            // It tells of an import into another node.
            name if is_mark(name) => Ok(()),
            // The name that the configuration gives needs no parameter.
            "cluster_name" if *value == *self.by.broker().cluster_name() => Ok(()),
            name if view
                .global(name)
                .is_some_and(|known| json::value(known) == *value) =>
            {
                Ok(())
            }
            name => parameters::make_global(self.by, name, value),
        }
    }

    fn topic_permission(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (user, vhost) = (needed(object, "user")?, needed(object, "vhost")?);
        topic_permissions::make(self.by, user, vhost, object)
    }

    /// The limits that a user or virtual host is to have besides those it has.
    fn limits(&self, of: QuotaOf, object: &Map<String, Value>) -> Result<(), Refusal> {
        let members = object.get("limits").and_then(Value::as_object);
        if let Some(members) = members {
            let limits = limits::read(&of, members)?;
            limits::add(self.by, of, limits)?;
        }
        Ok(())
    }

    fn exchange(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (name, vhost) = (needed(object, "name")?, self.vhost_of(object)?);
        let declare = DeclareExchange {
            name: name.to_owned(),
            kind: needed(object, "type")?.to_owned(),
            passive: false,
            durable: boolean(object, "durable")?,
            auto_delete: boolean(object, "auto_delete")?,
            internal: boolean(object, "internal")?,
            arguments: arguments::table(object, "arguments", self.by.broker().limits())?,
            ..DeclareExchange::default()
        };
        Ok(self.by.install_exchange(vhost, declare)?)
    }

    fn queue(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (name, vhost) = (needed(object, "name")?, self.vhost_of(object)?);
        if name.is_empty() {
            return Err(Refusal::bad_request("the name is empty"));
        }
        let mut arguments = arguments::table(object, "arguments", self.by.broker().limits())?;
        if let Some(kind) = text(object, "type")?
            && kind != QueueKind::default().name()
            && !arguments.contains("x-queue-type")
        {
            arguments.push("x-queue-type", kind);
        }
        let other_arguments = match object.get(CONVERTED_FROM) {
            None | Some(Value::Null) => None,
            Some(Value::Object(form)) => {
                Some(arguments::table(form, "arguments", self.by.broker().limits())?)
            }
            Some(_) => return Err(Refusal::bad_request(format!("{CONVERTED_FROM} is not an object"))),
        };
        let declare = DeclareQueue {
            name: name.to_owned(),
            durable: boolean(object, "durable")?,
            auto_delete: boolean(object, "auto_delete")?,
            other_arguments,
            arguments,
            ..DeclareQueue::default()
        };
        Ok(self.by.install_queue(vhost, declare)?)
    }

    /// A classic queue that was made just now becomes a quorum queue, if the asker wants that and it loses nothing by it. Clients
    /// that declare it as it was go on doing so: it is converted, not declared as another one.
    fn as_quorum(&self, object: &Map<String, Value>) -> Option<Remark> {
        let options = self.asked.options;
        let name = object.get("name").and_then(Value::as_str)?;
        let vhost = self.vhost_of(object).ok()?;
        let view = self.draft().view();
        let queue = view.queue(vhost, name)?;
        let policies = view.vhost(vhost)?.policies();
        let policy = policies.of_queue(queue).definition();
        let is_mirrored = policy.is_some_and(|policy| policy.contains("ha-mode"));
        let is_wanted = options.classic_as_quorum || options.mirrored_as_quorum && is_mirrored;
        if !is_wanted || queue.kind != QueueKind::Classic {
            return None;
        }
        let remark = |outcome, reason| Some(Remark::new(outcome, Cause::Wanted, reason).at("type"));
        let kept = |why: String| remark(Outcome::Noted, format!("it stays a classic queue: {why}"));
        match view.conversion(queue, QueueKind::Quorum) {
            Err(refusal) => kept(refusal.to_string()),
            Ok(conversion) if !conversion.lost.is_empty() => kept(format!(
                "as a quorum queue it would lose {}",
                conversion.lost.join(", ")
            )),
            Ok(_) => match self.by.convert_queue(vhost, name, QueueKind::Quorum) {
                Err(refusal) => kept(refusal.to_string()),
                Ok(()) => remark(
                    Outcome::Converted,
                    "a classic queue, made as a quorum queue; who declares it as a classic one means it, too"
                        .into(),
                ),
            },
        }
    }

    fn binding(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let destination = needed(object, "destination")?;
        let destination = match needed(object, "destination_type")? {
            "queue" => Destination::Queue(destination.into()),
            "exchange" => Destination::Exchange(destination.into()),
            other => {
                return Err(Refusal::bad_request(format!(
                    "destination_type can't be '{other}'"
                )));
            }
        };
        let routing_key = text(object, "routing_key")?.unwrap_or_default();
        if routing_key.len() > 255 {
            return Err(Refusal::bad_request("routing_key is longer than 255 bytes"));
        }
        let arguments = arguments::table(object, "arguments", self.by.broker().limits())?;
        let (source, vhost) = (needed(object, "source")?, self.vhost_of(object)?);
        Ok(self
            .by
            .install_binding(vhost, source, destination, routing_key.as_bytes(), arguments)?)
    }

    fn vhost_of<'o>(&'o self, object: &'o Map<String, Value>) -> Result<&'o str, Refusal> {
        self.asked.vhost.map_or_else(|| needed(object, "vhost"), Ok)
    }
}

fn needed<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a str, Refusal> {
    text(object, name)?.ok_or_else(|| Refusal::bad_request(format!("{name} is missing")))
}

/// What the broker says of an object, and whether something is missing or makes no sense.
fn explained(refusal: &Refusal) -> Remark {
    let reason = match refusal.body().map(|mut body| body["reason"].take()) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(other) => other.to_string(),
        None => "refused".into(),
    };
    let cause = match refusal {
        Refusal::Missing(_) | Refusal::NotFound => Cause::Missing,
        _ => Cause::Invalid,
    };
    Remark::new(Outcome::Refused, cause, reason)
}

/// What an object needs of what the document may have.
fn needs(place: &ImportedObject, object: &Map<String, Value>) -> Vec<Needed> {
    let member = |name: &str| {
        object
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let vhost = place.vhost.clone().unwrap_or_default();
    let mut needs = Vec::new();
    if !vhost.is_empty() {
        needs.push(("virtual host", String::new(), vhost.clone()));
    }
    if ["permissions", "topic_permissions"].contains(&place.class) {
        needs.push(("user", String::new(), member("user")));
    }
    match place.class {
        "topic_permissions" => needs.push(("exchange", vhost, member("exchange"))),
        "bindings" => {
            let kind = if member("destination_type") == "exchange" {
                "exchange"
            } else {
                "queue"
            };
            needs.push(("exchange", vhost.clone(), member("source")));
            needs.push((kind, vhost, member("destination")));
        }
        _ => {}
    }
    needs
}

/// What exists in every virtual host and is no definition.
pub fn is_of_the_server(name: &str) -> bool {
    name.is_empty() || name.starts_with("amq.")
}

fn objects<'a>(document: &'a Map<String, Value>, class: &str) -> Result<&'a [Value], String> {
    match document.get(class) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{class} is not a list")),
    }
}
