//! Which broker a connection goes to, and waiting until brokers are there.

use super::client::Client;
use crate::failure::Failure;
use crate::oauth2::Tokens;
use crate::plan::{Allocation, Connecting, Plan};
use crate::uri::Uri;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait between looks at brokers that are not up, as PerfTest does.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// The plan's addresses, and the way in which connections are shared out among them.
#[derive(Debug, Clone)]
pub struct Addresses {
    uris: Vec<Uri>,
    allocation: Allocation,
}

impl Addresses {
    /// `uris`: at least one, which the plan guarantees.
    pub fn new(uris: &[Uri], allocation: Allocation) -> Self {
        Self {
            uris: uris.to_vec(),
            allocation,
        }
    }

    /// The address that connection `number` takes first.
    pub fn pick(&self, number: usize) -> &Uri {
        let at = match self.allocation {
            Allocation::Random => fastrand::usize(..self.uris.len()),
            Allocation::RoundRobin => number % self.uris.len(),
        };
        &self.uris[at]
    }

    /// All addresses in the order in which connection `number` tries them.
    pub fn order(&self, number: usize) -> Vec<&Uri> {
        let mut order: Vec<&Uri> = self.uris.iter().collect();
        match self.allocation {
            Allocation::Random => fastrand::shuffle(&mut order),
            Allocation::RoundRobin => order.rotate_left(number % self.uris.len()),
        }
        order
    }

    /// Opens connection `number` to the first address that lets it in, as PerfTest's client library does with `--uris`.
    ///
    /// # Errors
    /// The last address's failure.
    pub fn open(
        &self,
        number: usize,
        how: &Connecting,
        name: &str,
        id: &str,
        token: Option<&str>,
    ) -> Result<Client, Failure> {
        let mut failed = Failure::Connect("there is no address to connect to: use --uri".into());
        for uri in self.order(number) {
            match Client::open(uri, how, name, id, token) {
                Ok(client) => return Ok(client),
                Err(failure) => failed = failure,
            }
        }
        Err(failed)
    }
}

/// Waits until as many brokers let us in as `--servers-up-limit` says, or all; at once without `--servers-startup-timeout`.
///
/// # Errors
/// [`Failure::Connect`] when the time is over, with the last broker's reason.
pub fn wait_for_servers(plan: &Plan) -> Result<(), Failure> {
    let Some(timeout) = plan.connection.startup_timeout else {
        return Ok(());
    };
    let wanted = plan
        .connection
        .servers_up_limit
        .unwrap_or(plan.uris.len())
        .min(plan.uris.len());
    let deadline = Instant::now() + timeout;
    let mut missing: Vec<&Uri> = plan.uris.iter().collect();
    let mut last = None;
    loop {
        // The token server may be starting as well.
        match plan.connection.oauth2.as_ref().map(Tokens::fetch).transpose() {
            Ok(token) => {
                let token = token.as_ref().map(|it| it.value.as_str());
                missing.retain(|uri| {
                    match Client::open(uri, &plan.connection, "perf-test-test", &plan.id, token) {
                        Ok(client) => {
                            client.close();
                            false
                        }
                        Err(failure) => {
                            last = Some(failure);
                            true
                        }
                    }
                });
            }
            Err(failure) => last = Some(failure),
        }
        if plan.uris.len() - missing.len() >= wanted {
            return Ok(());
        }
        if Instant::now() + BETWEEN_LOOKS >= deadline {
            let why = last.map(|failure| format!(": {failure}")).unwrap_or_default();
            let seconds = timeout.as_secs();
            return Err(Failure::Connect(format!(
                "Could not connect to broker(s) in {seconds} second(s), exiting{why}"
            )));
        }
        // No event tells that a broker is up: all one can do is to look again.
        thread::park_timeout(BETWEEN_LOOKS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::scripted::{Offer, connecting, plan, start};
    use std::net::TcpListener;

    fn uris(hosts: &[&str]) -> Vec<Uri> {
        hosts
            .iter()
            .map(|host| Uri::parse(&format!("amqp://{host}")).unwrap())
            .collect()
    }

    /// An address at which nobody is.
    fn nobody() -> Uri {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Uri::parse(&format!("amqp://{address}")).unwrap()
    }

    #[test]
    fn addresses_take_turns_or_are_drawn() {
        let all = uris(&["a", "b", "c"]);
        let turns = Addresses::new(&all, Allocation::RoundRobin);
        let hosts: Vec<&str> = (0..4).map(|number| turns.pick(number).host.as_str()).collect();
        assert_eq!(hosts, ["a", "b", "c", "a"]);
        let order: Vec<&str> = turns.order(1).iter().map(|uri| uri.host.as_str()).collect();
        assert_eq!(order, ["b", "c", "a"]);
        let drawn = Addresses::new(&all, Allocation::Random);
        let seen: std::collections::BTreeSet<&str> = (0..200).map(|_| drawn.pick(0).host.as_str()).collect();
        assert_eq!(seen.len(), 3);
        let mut order: Vec<&str> = drawn.order(0).iter().map(|uri| uri.host.as_str()).collect();
        order.sort_unstable();
        assert_eq!(order, ["a", "b", "c"]);
    }

    #[test]
    fn the_next_address_is_tried_if_one_does_not_answer() {
        let (there, _broker) = start(|mut peer| peer.log_in(&Offer::default()));
        let addresses = Addresses::new(&[nobody(), there], Allocation::RoundRobin);
        assert!(addresses.open(0, &connecting(), "n", "i", None).is_ok());
        let nowhere = Addresses::new(&[nobody()], Allocation::Random);
        assert!(matches!(
            nowhere.open(0, &connecting(), "n", "i", None),
            Err(Failure::Connect(_))
        ));
    }

    #[test]
    fn as_many_servers_as_the_limit_says_are_waited_for() {
        let (there, broker) = start(|mut peer| {
            let seen = peer.log_in(&Offer::default());
            peer.serve(|_| None);
            seen
        });
        let mut plan = plan("-sst 1 -sul 1");
        plan.uris = vec![nobody(), there];
        wait_for_servers(&plan).unwrap();
        let name = broker.join().unwrap().properties;
        assert_eq!(
            name.get("connection_name").and_then(|it| it.as_str()),
            Some("perf-test-test")
        );
        plan.connection.servers_up_limit = None;
        plan.uris = vec![nobody()];
        let text = wait_for_servers(&plan).unwrap_err().to_string();
        assert!(
            text.starts_with("Could not connect to broker(s) in 1 second(s), exiting: can't connect"),
            "{text}"
        );
        plan.connection.startup_timeout = None;
        wait_for_servers(&plan).unwrap();
    }
}
