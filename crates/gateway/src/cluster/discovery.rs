//! Who is to be in a cluster: as the configuration says it, or as it is looked up.

use super::ConfiguredNode;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

/// How a node finds those that it is to be one cluster with.
#[derive(Clone)]
pub enum Discovery {
    /// The configuration says who they are.
    Known(Found),
    /// They are at the addresses of a name, which may not have all of them yet.
    Named(SeedName, Arc<dyn Resolver>),
}

/// Who is to be in the cluster, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// All nodes that are known of, this one among them or not.
    pub nodes: Vec<ConfiguredNode>,
    /// Who begins the cluster, if that is not the one whose name is the first in sorted order.
    pub founder: Option<String>,
    /// Why there may be others, so that nobody may begin a cluster yet.
    pub lacks: Option<String>,
    /// Whoever asks to be let in, and is not found, is one more: the look-up may have shown a part only.
    pub is_looked_up: bool,
    /// What an operator may do besides starting a node that is waited for, such as `or take it out of the list`.
    pub instead: String,
}

/// A name that has the addresses of all nodes, as in RabbitMQ's `cluster_formation.dns.hostname`. The names of the hosts at these
/// addresses make the names of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedName {
    pub host: String,
    /// What this node is called. What its name begins with, the others' begin with, too.
    pub own: String,
    /// Names of hosts have their domain.
    pub is_long: bool,
    /// Where the others listen.
    pub port: u16,
    /// How many nodes there are to be.
    pub size: usize,
}

/// What knows the names and addresses of hosts.
pub trait Resolver: Send + Sync {
    /// # Errors
    /// The name has no address, or nobody can say.
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// # Errors
    /// The address has no name, or nobody can say.
    fn name(&self, address: IpAddr) -> io::Result<String>;
}

/// The one of the system: files of hosts, and name servers.
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let addresses = (host, 0).to_socket_addrs()?;
        Ok(addresses.map(|address| address.ip()).collect())
    }

    fn name(&self, address: IpAddr) -> io::Result<String> {
        Ok(dns_lookup::lookup_addr(&address)?)
    }
}

impl Found {
    /// The names of all that are found.
    pub fn names(&self) -> Vec<&str> {
        self.nodes.iter().map(|node| node.name.as_str()).collect()
    }

    /// Whether the node of this name is the one that begins the cluster.
    pub fn is_begun_by(&self, name: &str) -> bool {
        let mut names = self.nodes.iter().map(|node| node.name.as_str());
        if !names.clone().any(|found| found == name) {
            return self.nodes.is_empty() && self.lacks.is_none();
        }
        let founder = self.founder.as_deref();
        founder.map_or_else(|| names.all(|other| name <= other), |founder| founder == name)
    }
}

impl Discovery {
    /// Finds out. May take as long as name servers do.
    pub fn find(&self) -> Found {
        match self {
            Self::Known(found) => found.clone(),
            Self::Named(seed, resolver) => seed.find(resolver.as_ref()),
        }
    }
}

impl SeedName {
    fn find(&self, resolver: &dyn Resolver) -> Found {
        let (mut hosts, mut nameless) = (BTreeSet::new(), Vec::new());
        match resolver.addresses(&self.host) {
            Ok(addresses) => {
                let addresses: BTreeSet<_> = addresses.into_iter().collect();
                for address in addresses {
                    match resolver.name(address).map(|name| self.host_of(&name)) {
                        Ok(Some(host)) => drop(hosts.insert(host)),
                        Ok(None) => nameless.push(format!("{address} has a name that no node can have")),
                        Err(error) => nameless.push(format!("{address} has no name: {error}")),
                    }
                }
            }
            Err(error) => nameless.push(error.to_string()),
        }
        let prefix = self.own.split_once('@').map_or(&*self.own, |(prefix, _)| prefix);
        let node = |host| ConfiguredNode {
            name: format!("{prefix}@{host}"),
            port: Some(self.port),
        };
        let nodes: Vec<_> = hosts.into_iter().map(node).collect();
        Found {
            lacks: self.lacks(&nodes, &nameless),
            nodes,
            founder: None,
            is_looked_up: true,
            instead: format!("or take its address out of {}", self.host),
        }
    }

    /// Why these are not all nodes, if they are not.
    fn lacks(&self, nodes: &[ConfiguredNode], nameless: &[String]) -> Option<String> {
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        let mut found = match names.as_slice() {
            [] => format!("{} has no nodes", self.host),
            names => format!("{} has {}", self.host, names.join(", ")),
        };
        for more in nameless {
            found = format!("{found}; {more}");
        }
        let (count, size) = (names.len(), self.size);
        if count < size {
            Some(format!("{count} of {size} nodes are found: {found}"))
        } else if count > size {
            Some(format!(
                "{count} nodes are found where {size} are expected: {found}; set cluster_formation.target_cluster_size_hint to how many \
                 there are"
            ))
        } else if !names.contains(&&*self.own) {
            Some(format!(
                "this node, {}, is none of those that are found: {found}; the host in its name must be what its address has as its name",
                self.own
            ))
        } else {
            None
        }
    }

    /// The host as a node's name has it.
    fn host_of(&self, name: &str) -> Option<String> {
        let name = name.trim_end_matches('.');
        let host = match self.is_long {
            true => name,
            false => name.split('.').next().unwrap_or_default(),
        };
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        (!host.is_empty() && host.len() <= 253 && host.chars().all(fits)).then(|| host.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What a name server has just now.
    struct Records(BTreeMap<&'static str, &'static str>);

    impl Resolver for Records {
        fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
            match host {
                "mq.example" => Ok(self.0.keys().map(|address| address.parse().unwrap()).collect()),
                _ => Err(io::Error::other("no such name")),
            }
        }

        fn name(&self, address: IpAddr) -> io::Result<String> {
            let name = self.0.get(address.to_string().as_str()).copied();
            let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
            name.ok_or_else(|| io::Error::other("nobody knows"))
        }
    }

    fn seed() -> SeedName {
        SeedName {
            host: "mq.example".to_owned(),
            own: "hare@mq2.example".to_owned(),
            is_long: true,
            port: 25_702,
            size: 3,
        }
    }

    fn found(seed: &SeedName, records: &[(&'static str, &'static str)]) -> Found {
        let resolver = Arc::new(Records(records.iter().copied().collect()));
        Discovery::Named(seed.clone(), resolver).find()
    }

    const THREE: [(&str, &str); 3] = [
        ("10.0.0.1", "mq3.example"),
        ("10.0.0.2", "mq1.example."),
        ("::7", "mq2.example"),
    ];

    #[test]
    fn the_hosts_at_the_addresses_of_the_name_are_the_nodes() {
        let found = found(&seed(), &THREE);
        let nodes: Vec<_> = found.nodes.iter().map(|node| (&*node.name, node.port)).collect();
        let node = |name| (name, Some(25_702));
        assert_eq!(
            nodes,
            [
                node("hare@mq1.example"),
                node("hare@mq2.example"),
                node("hare@mq3.example")
            ]
        );
        assert_eq!(found.lacks, None);
        assert!(found.is_begun_by("hare@mq1.example") && !found.is_begun_by("hare@mq2.example"));
        assert!(found.is_looked_up);
        let short = SeedName {
            is_long: false,
            own: "hare@mq2".to_owned(),
            ..seed()
        };
        let found = self::found(&short, &THREE);
        assert_eq!((&*found.nodes[0].name, found.lacks), ("hare@mq1", None));
    }

    #[test]
    fn nobody_begins_before_exactly_as_many_are_found_as_there_are_to_be_and_this_one_among_them() {
        let lacks = |records: &[_]| {
            let found = found(&seed(), records);
            found.lacks.unwrap()
        };
        assert!(lacks(&[]).starts_with("0 of 3 nodes are found: mq.example has no nodes"));
        assert!(lacks(&THREE[..2]).starts_with("2 of 3 nodes are found: "));
        let unknown = [THREE[0], THREE[1], ("10.0.0.4", "")];
        assert!(lacks(&unknown).contains("10.0.0.4 has no name: nobody knows"));
        let twice = [THREE[0], THREE[1], ("10.0.0.5", "mq1.example")];
        assert!(lacks(&twice).starts_with("2 of 3 nodes"));
        let four = [&THREE[..], &[("10.0.0.4", "mq4.example")]].concat();
        assert!(lacks(&four).starts_with("4 nodes are found where 3 are expected: "));
        let strange = [THREE[0], THREE[1], ("10.0.0.4", "mq4.example")];
        assert!(lacks(&strange).starts_with("this node, hare@mq2.example, is none of those that are found"));
        let rubbish = [THREE[0], THREE[2], ("10.0.0.4", "a b")];
        assert!(lacks(&rubbish).contains("10.0.0.4 has a name that no node can have"));
        let elsewhere = SeedName {
            host: "gone.example".to_owned(),
            ..seed()
        };
        let found = found(&elsewhere, &THREE);
        assert!(found.lacks.as_ref().unwrap().ends_with("no such name"));
        assert!(
            !found.is_begun_by("hare@mq2.example"),
            "nobody is known to be alone"
        );
    }

    #[test]
    fn the_system_knows_this_machine() {
        let addresses = SystemResolver.addresses("localhost").unwrap();
        assert!(addresses.contains(&"127.0.0.1".parse().unwrap()), "{addresses:?}");
        let name = SystemResolver.name("127.0.0.1".parse().unwrap()).unwrap();
        assert!(!name.is_empty());
    }

    #[test]
    fn the_first_name_begins_unless_another_one_is_said_to() {
        let node = |name: &str| ConfiguredNode {
            name: name.to_owned(),
            port: None,
        };
        let mut found = Found {
            nodes: vec![node("r@mq-10"), node("r@mq-9")],
            ..Found::default()
        };
        assert!(found.is_begun_by("r@mq-10") && !found.is_begun_by("r@mq-9"));
        found.founder = Some("r@mq-9".to_owned());
        assert!(!found.is_begun_by("r@mq-10") && found.is_begun_by("r@mq-9"));
        assert!(!found.is_begun_by("r@mq-1"), "it is not named");
        assert!(Found::default().is_begun_by("r@mq-1"), "it is alone");
    }
}
