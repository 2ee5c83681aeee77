//! What users were granted in virtual hosts: permissions and topic permissions are listed alike.

use crate::call::Call;
use crate::listing::List;
use crate::refusal::Refusal;
use crate::reply::Reply;
use broker::View;
use serde_json::Value;

/// Something that a user was granted in a virtual host.
pub trait Grant: Sized {
    /// All of its kind, in RabbitMQ's order.
    fn all(view: &View) -> Vec<&Self>;
    /// Who has it.
    fn user(&self) -> &str;
    /// Where it holds.
    fn vhost(&self) -> &str;
    /// It as lists and definitions have it.
    fn row(&self) -> Value;
}

/// `GET` of all.
pub fn list<G: Grant>(call: &Call<'_>) -> Result<Reply, Refusal> {
    reply(call, G::all(&call.view))
}

/// `GET` of a virtual host's.
pub fn of_vhost<G: Grant>(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    let mut grants = G::all(&call.view);
    grants.retain(|grant| grant.vhost() == &*vhost.name);
    reply(call, grants)
}

/// `GET` of a user's.
pub fn of_user<G: Grant>(call: &Call<'_>) -> Result<Reply, Refusal> {
    let user = call.view.user(call.part("user")).ok_or(Refusal::NotFound)?;
    let mut grants = G::all(&call.view);
    grants.retain(|grant| grant.user() == &*user.name);
    reply(call, grants)
}

/// The answer with these.
pub fn reply<G: Grant>(call: &Call<'_>, grants: Vec<&G>) -> Result<Reply, Refusal> {
    let total = grants.len();
    let list = List {
        name: &|grant: &&G| grant.user(),
        row: &|grant: &&G| grant.row(),
        member: &|_, _| None,
    };
    list.reply(&call.query, call.cut, grants.into_iter(), total)
}

/// The user and the virtual host of the path, which a grant needs.
///
/// # Errors
/// One of them does not exist, in RabbitMQ's word for either.
pub fn grantee<'a>(call: &'a Call<'_>) -> Result<(&'a str, &'a str), Refusal> {
    let (user, vhost) = (call.part("user"), call.part("vhost"));
    match call.view.user(user).is_some() && call.view.vhost(vhost).is_some() {
        true => Ok((user, vhost)),
        false => Err(Refusal::bad_request("vhost_or_user_not_found")),
    }
}
