//! Bodies made smaller for those who take them so: lists repeat the names of their members in each object, and shrink to a
//! tenth.

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{ACCEPT_ENCODING, HeaderMap};
use std::io::Write;

/// Bodies shorter than this stay as they are: a network carries them in one packet anyhow. It is Cowboy's limit too.
const SHORT: usize = 300;

/// The body in gzip's form, if the asker takes that and it is worth the work.
pub fn squeeze(headers: &HeaderMap, body: &[u8]) -> Option<Vec<u8>> {
    let asked = headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
    if body.len() < SHORT || !accepts(asked) {
        return None;
    }
    // The quickest level: two thirds of what the best one spares, for a fifth of its time.
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 8), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

/// Makes a body smaller that comes in pieces.
#[derive(Debug)]
pub struct Squeezer(GzEncoder<Vec<u8>>);

impl Squeezer {
    /// For an asker who takes gzip's form.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let asked = headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
        accepts(asked).then(|| Self(GzEncoder::new(Vec::new(), Compression::fast())))
    }

    /// What can be sent after this piece; all that is left, if it is the last.
    ///
    /// # Errors
    /// None: it is written to memory.
    pub fn piece(&mut self, piece: &[u8], is_last: bool) -> std::io::Result<Vec<u8>> {
        self.0.write_all(piece)?;
        if is_last {
            self.0.try_finish()?;
        }
        Ok(std::mem::take(self.0.get_mut()))
    }
}

/// True if the header `accept-encoding` names gzip, and not with the weight zero.
fn accepts(asked: &str) -> bool {
    let forms = asked
        .split(',')
        .map(|form| form.split_once(';').unwrap_or((form, "")));
    let mut named =
        forms.filter(|(name, _)| ["gzip", "x-gzip"].contains(&name.trim().to_ascii_lowercase().as_str()));
    named.any(|(_, weight)| {
        let weight = weight.trim().trim_start_matches("q=").trim();
        weight.is_empty() || weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use hyper::header::HeaderValue;
    use std::io::Read;

    fn asked(forms: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(forms))])
    }

    #[test]
    fn pieces_make_one_body() {
        let mut squeezer = Squeezer::of(&asked("gzip")).unwrap();
        assert!(Squeezer::of(&asked("br")).is_none());
        let piece = b"leveret_queue_messages 1\n".repeat(20_000);
        let mut squeezed = Vec::new();
        for at in 0..3 {
            squeezed.extend(squeezer.piece(&piece, at == 2).unwrap());
        }
        let mut again = Vec::new();
        GzDecoder::new(&squeezed[..]).read_to_end(&mut again).unwrap();
        assert_eq!(again, piece.repeat(3));
    }

    #[test]
    fn a_long_body_is_squeezed_for_those_who_take_it() {
        let body = b"leveret_queue_messages 1\n".repeat(100);
        for forms in ["gzip", "deflate, GZIP;q=0.5", "br;q=1.0, gzip;q=0.8, *;q=0.1"] {
            let squeezed = squeeze(&asked(forms), &body).unwrap();
            assert!(squeezed.len() * 5 < body.len());
            let mut again = Vec::new();
            GzDecoder::new(&squeezed[..]).read_to_end(&mut again).unwrap();
            assert_eq!(again, body);
        }
        for forms in ["", "identity", "br", "gzip;q=0", "gzip;q=x"] {
            assert_eq!(squeeze(&asked(forms), &body), None, "{forms}");
        }
        assert_eq!(squeeze(&HeaderMap::new(), &body), None);
        assert_eq!(squeeze(&asked("gzip"), b"[]"), None);
    }
}
