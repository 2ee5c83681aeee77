//! What all nodes of a cluster know, and how one proves to the other that it knows it, too, without saying it.

use aws_lc_rs::hmac;
use std::fmt;

/// The bytes of a proof.
pub const PROOF_BYTES: usize = 32;

/// Which end of a link proves. The ends prove different things, so that no proof can be sent back to who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Who dials.
    Dialler,
    /// Who is dialled.
    Listener,
}

impl End {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Dialler => b"leveret link, proof of who dials\0",
            Self::Listener => b"leveret link, proof of who is dialled\0",
        }
    }
}

/// A shared secret (`cluster.secret`). Whoever sees a proof can try secrets against it, so it should be long and random.
#[derive(Clone)]
pub struct Secret(hmac::Key);

impl Secret {
    /// `None` if there is nothing in it.
    pub fn new(secret: &[u8]) -> Option<Self> {
        (!secret.is_empty()).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// For nodes whose certificates alone say who they are: it is known to everybody. Proofs by it say nothing but that both
    /// greetings came by this TLS session.
    pub fn none() -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, b"leveret link, no secret"))
    }

    /// HMAC-SHA-256 of everything that both ends know of the connection: both greetings as they were sent, with names,
    /// versions and challenges, and what TLS gives them in common (nothing without it), each behind its length.
    pub(crate) fn prove(&self, end: End, transcript: &Transcript) -> [u8; PROOF_BYTES] {
        let mut proof = [0; PROOF_BYTES];
        let made = hmac::sign(&self.0, &transcript.bytes(end));
        proof.copy_from_slice(made.as_ref());
        proof
    }

    /// Whether this is the proof of that. Takes as long for a wrong one as for the right one.
    pub(crate) fn verify(&self, end: End, transcript: &Transcript, proof: &[u8]) -> bool {
        hmac::verify(&self.0, &transcript.bytes(end), proof).is_ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What a proof is about.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The greeting of who dials.
    pub dialler: Vec<u8>,
    /// The greeting of who is dialled.
    pub listener: Vec<u8>,
    /// What only the two ends of this TLS session know; empty without TLS.
    pub binding: Vec<u8>,
}

impl Transcript {
    fn bytes(&self, end: End) -> Vec<u8> {
        let mut bytes = end.label().to_vec();
        for part in [&self.dialler, &self.listener, &self.binding] {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }
}
