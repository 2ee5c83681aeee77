//! Which certificates of a file end soon, for the health check that looks at them.

use crate::{Certificate, certificate};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::time::ASN1Time;

/// The ends of the certificates in a file that are over within this time, as RabbitMQ writes them
/// (`2027-01-31 9:05:00`, in UTC), and a sentence for each that cannot be read or has not begun. The file is read now:
/// what matters is what the next start will find.
pub fn ending_within(path: &Path, time: Duration) -> Vec<String> {
    let certificates = match certificates(path) {
        Ok(certificates) => certificates,
        Err(error) => return vec![error],
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let (now, then) = (moment(now), moment(now.saturating_add(time.as_secs())));
    let certificates = certificates.iter();
    certificates
        .filter_map(|certificate| concern(&Certificate::parse(certificate), &now, &then))
        .collect()
}

/// The certificates in a file, in DER; nothing else of it. The file is read now.
///
/// # Errors
/// A sentence: it cannot be read, or holds none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err("The certificate file provided does not contain any PEM entry.".into())
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(format!("the certificate file cannot be read: {error}")),
    }
}

/// What is to be said of a certificate. Moments in this form are in the order of their texts.
fn concern(certificate: &Option<Certificate>, now: &str, then: &str) -> Option<String> {
    let span = certificate
        .as_ref()
        .and_then(|found| found.validity.split_once(" - "));
    match span {
        None => Some("a certificate cannot be read".into()),
        Some((from, _)) if from > now => Some("Certificate is not yet valid".into()),
        Some((_, until)) if until < then => Some(shown(until)),
        Some(_) => None,
    }
}

/// `2027-01-31T09:05:00Z` as RabbitMQ writes it: hours without a leading zero.
fn shown(moment: &str) -> String {
    let text = moment.trim_end_matches('Z').replace('T', " ");
    text.replace(" 0", " ")
}

/// Seconds since 1970 in UTC as `2027-01-31T09:05:00Z`; years after 9999 as its last second, which no certificate survives.
pub fn moment(unix_s: u64) -> String {
    const LAST: &str = "9999-12-31T23:59:59Z";
    let moment = i64::try_from(unix_s).ok().map(ASN1Time::from_timestamp);
    moment
        .and_then(Result::ok)
        .map_or_else(|| LAST.to_owned(), certificate::moment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn file(from: i32, until: i32) -> tempfile::NamedTempFile {
        let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 31);
        let pem = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), pem).unwrap();
        file
    }

    #[test]
    fn a_certificate_is_named_if_it_ends_within_the_time() {
        let lasting = file(2020, 4000);
        let decade = Duration::from_secs(3650 * 86_400);
        assert!(ending_within(lasting.path(), decade).is_empty());
        assert_eq!(
            ending_within(lasting.path(), Duration::from_secs(u64::MAX)),
            ["4000-01-31 0:00:00"]
        );
        assert_eq!(
            ending_within(file(2020, 2021).path(), Duration::ZERO),
            ["2021-01-31 0:00:00"]
        );
    }

    #[test]
    fn what_cannot_be_judged_is_a_concern() {
        assert_eq!(
            ending_within(file(3000, 4000).path(), Duration::ZERO),
            ["Certificate is not yet valid"]
        );
        let empty = tempfile::NamedTempFile::new().unwrap();
        assert!(ending_within(empty.path(), Duration::ZERO)[0].contains("any PEM entry"));
        let gone = ending_within(Path::new("/nowhere/at/all.pem"), Duration::ZERO);
        assert!(gone[0].contains("cannot be read"), "{gone:?}");
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(moment(0), "1970-01-01T00:00:00Z");
        assert_eq!(moment(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(moment(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(moment(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
