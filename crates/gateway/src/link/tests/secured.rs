//! Links with TLS.

use super::log::{keep, lines};
use super::wire::Wire;
use super::*;
use listener::{SocketOptions, Tls, TlsOptions};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// An authority, and certificates that it has signed.
struct Authority {
    dir: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        fs::write(dir.path().join("authority.pem"), own.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { dir, issuer }
    }

    /// Settings of a node whose certificate is of this host.
    fn options(&self, host: &str) -> TlsOptions {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |kind: &str| self.dir.path().join(format!("{host}.{kind}.pem"));
        fs::write(path("cert"), certificate.pem()).unwrap();
        fs::write(path("key"), key.serialize_pem()).unwrap();
        let mut options = TlsOptions::new("cluster.tls");
        options.certificate = Some(path("cert"));
        options.key = Some(path("key"));
        options.authorities = Some(self.path().join("authority.pem"));
        options
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn verified(options: TlsOptions) -> TlsOptions {
    TlsOptions {
        verify_peer: true,
        fail_if_no_peer_cert: true,
        ..options
    }
}

fn secured(name: &str, tls: TlsOptions) -> LinkOptions {
    let tls = Tls::load(tls).unwrap();
    LinkOptions {
        endpoints: vec![Endpoint::secured(
            PROTOCOL,
            "127.0.0.1:0".parse().unwrap(),
            tls.clone(),
        )],
        tls: Some(tls),
        ..options(name)
    }
}

#[test]
fn links_are_made_with_tls_and_carry_frames_of_any_length() {
    let authority = Authority::new();
    for (case, tls) in [
        ("any", authority.options("127.0.0.1")),
        ("verified", verified(authority.options("127.0.0.1"))),
        (
            "old",
            TlsOptions {
                versions: vec![listener::Version::Tls12],
                ..authority.options("127.0.0.1")
            },
        ),
    ] {
        let [one, two] = [1, 2].map(|id| Node::start(id, secured(&format!("{case}@{id}"), tls.clone())));
        introduce(&[&one, &two]);
        one.linked(&two);
        two.linked(&one);
        assert!(one.lane(&two, Lane::Bulk).link.unwrap().is_secured);
        let large: Bytes = vec![3; 1 << 20].into();
        wait("it has come", || {
            one.send(&two, Lane::Bulk, &large);
            two.book.frames(1, Lane::Bulk).contains(&large)
        });
    }
}

#[test]
fn a_certificate_of_another_authority_or_host_is_refused_on_the_side_that_looks() {
    let (authority, other) = (Authority::new(), Authority::new());
    let good = || verified(authority.options("127.0.0.1"));
    for (case, bad) in [
        ("authority", verified(other.options("127.0.0.1"))),
        ("host", verified(authority.options("n2.example"))),
    ] {
        let one = Node::start(1, secured(&format!("{case}@1"), good()));
        let two = Node::start(2, secured(&format!("{case}@2"), bad));
        // Only the one that looks dials.
        one.links.set_peers(vec![two.peer()]);
        one.refused(&two, "TLS handshake failed: invalid peer certificate");
    }
}

/// A node that has no secret; it is where its name says.
fn certified(name: &str, tls: TlsOptions) -> LinkOptions {
    LinkOptions {
        secret: Secret::none(),
        is_certified: true,
        ..secured(name, tls)
    }
}

#[test]
fn nodes_without_a_secret_know_each_other_by_the_hosts_in_their_certificates() {
    let authority = Authority::new();
    let tls = || verified(authority.options("127.0.0.1"));
    let one = Node::start(1, certified("one@127.0.0.1", tls()));
    let two = Node::start(2, certified("two@127.0.0.1", tls()));
    introduce(&[&one, &two]);
    one.linked(&two);
    two.linked(&one);
}

#[test]
fn a_node_that_is_at_another_host_than_its_certificate_says_is_refused_by_both_ends() {
    keep();
    let authority = Authority::new();
    let tls = || verified(authority.options("127.0.0.1"));
    let one = Node::start(1, certified("sure@127.0.0.1", tls()));
    let two = Node::start(2, certified("elsewhere@n2.example", tls()));
    // Each dials by itself: the one that is sure of itself, then the other one.
    one.links.set_peers(vec![two.peer()]);
    one.refused(&two, "the certificate is not that of the node");
    one.links.set_peers(Vec::new());
    two.links.set_peers(vec![one.peer()]);
    two.refused(
        &one,
        "the other node says: the certificate is not that of the node",
    );
    wait("the one that was dialled logs it", || {
        !lines(&[
            "no link with a node",
            "elsewhere@n2.example",
            "the certificate is not that of the node",
        ])
        .is_empty()
    });
}

#[test]
fn a_node_with_a_secret_and_one_without_are_no_peers_whatever_their_certificates_say() {
    let authority = Authority::new();
    let tls = || verified(authority.options("127.0.0.1"));
    let one = Node::start(1, certified("without@127.0.0.1", tls()));
    let two = Node::start(2, secured("with@127.0.0.1", tls()));
    one.links.set_peers(vec![two.peer()]);
    one.refused(&two, "do not have the same secret");
}

/// Somebody who has a certificate, knows no secret, and passes on what two nodes say, inside a session with each of them.
fn sit_between(tls: Arc<Tls>, other: SocketAddr) -> SocketAddr {
    let (told, at) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, async move {
            let endpoint = Endpoint::secured(PROTOCOL, "127.0.0.1:0".parse().unwrap(), tls.clone());
            let listener = listener::Listener::open(endpoint, &SocketOptions::default()).unwrap();
            told.send(listener.endpoint().address.network().unwrap()).unwrap();
            loop {
                let (arrival, tls) = (listener.next().await, tls.clone());
                tokio::task::spawn_local(async move {
                    let mut here = arrival.enter().await?.socket;
                    let there = tokio::net::TcpStream::connect(other).await?;
                    let (mut there, _) = tls.connect(there, "127.0.0.1").await?;
                    tokio::io::copy_bidirectional(&mut here, &mut there).await
                });
            }
        });
    });
    at.recv().unwrap()
}

#[test]
fn who_sits_between_two_nodes_with_a_certificate_of_its_own_is_found_by_the_secret() {
    keep();
    let authority = Authority::new();
    let [one, two] = [1, 2].map(|id| {
        Node::start(
            id,
            secured(&format!("relay@{id}"), authority.options("127.0.0.1")),
        )
    });
    let other = Authority::new();
    let between = Tls::load(other.options("127.0.0.1")).unwrap();
    one.links
        .set_peers(vec![two.peer_at(sit_between(between, two.address()))]);
    one.refused(&two, "do not have the same secret");
    wait("the other one logs it", || {
        !lines(&["no link with a node", "relay@1", "do not have the same secret"]).is_empty()
    });
}

#[test]
fn a_node_that_speaks_tls_and_one_that_does_not_are_no_peers() {
    keep();
    let authority = Authority::new();
    let one = Node::start(1, secured("mixed@1", authority.options("127.0.0.1")));
    let two = Node::start(2, options("mixed@2"));
    introduce(&[&one, &two]);
    one.refused(&two, "TLS handshake failed");
    wait("the other one is closed, too", || {
        two.lane(&one, Lane::Work).last_lost.is_some()
    });
    assert!(two.lane(&one, Lane::Work).link.is_none());
    wait("it is logged", || {
        !lines(&["no link with node mixed@2", "TLS handshake failed"]).is_empty()
    });
}

#[test]
fn a_link_with_tls_that_carries_nothing_any_more_is_found_and_made_again() {
    let authority = Authority::new();
    let tls = || authority.options("127.0.0.1");
    let short = |name, tls| LinkOptions {
        silence: SILENCE,
        ..secured(name, tls)
    };
    let one = Node::start(1, short("cut@1", tls()));
    let two = Node::start(2, short("cut@2", tls()));
    let wire = Wire::to(two.address());
    one.links.set_peers(vec![two.peer_at(wire.address())]);
    two.links
        .set_peers(vec![one.peer_at("127.0.0.1:1".parse().unwrap())]);
    one.linked(&two);
    two.linked(&one);
    wire.cut();
    for (node, other) in [(&one, &two), (&two, &one)] {
        node.book.until("both ends notice", |told| {
            told.contains(&Told::Down(other.id, Lane::Consensus, false))
        });
    }
    wire.mend();
    one.linked(&two);
    two.linked(&one);
}
