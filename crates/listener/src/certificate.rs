//! Who a certificate says its owner is, in RabbitMQ's words (`rabbit_cert_info`).

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

/// What is told of a certificate. Its signatures were checked by the TLS library; this only reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The owner's distinguished name as RFC 4514 writes it: the last part first.
    pub subject: String,
    /// Who signed it, in the same form.
    pub issuer: String,
    /// From when until when, as `2026-01-01T00:00:00Z - 2027-01-01T00:00:00Z`.
    pub validity: String,
    /// The serial number in hexadecimal digits.
    pub serial_number: String,
    /// The subject's common names.
    pub common_names: Vec<String>,
    /// Other names of the owner, in the certificate's order.
    pub alternative_names: Vec<(SanType, String)>,
}

/// The kinds of alternative names (`ssl_cert_login_san_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SanType {
    /// The name of a host.
    Dns,
    /// An address; RabbitMQ takes its raw bytes for a name, here it is text.
    Ip,
    /// A mail address.
    Email,
    /// An address of the web.
    Uri,
    /// Anything else that has a value of text.
    OtherName,
}

/// Which name of a certificate is the user's (`ssl_cert_login_from`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginFrom {
    /// The whole subject.
    #[default]
    DistinguishedName,
    /// The common names, with commas between them.
    CommonName,
    /// The alternative name at this position among those of its kind, from 0.
    AlternativeName(SanType, usize),
}

/// RabbitMQ's names of attributes; others are named by their numbers.
const ATTRIBUTES: [(&str, &str); 17] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "SERIALNUMBER"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "TITLE"),
    ("2.5.4.42", "GIVENNAME"),
    ("2.5.4.43", "INITIALS"),
    ("2.5.4.44", "GENERATIONQUALIFIER"),
    ("2.5.4.65", "PSEUDONYM"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "EMAILADDRESS"),
];
const COMMON_NAME: &str = "2.5.4.3";

impl Certificate {
    /// Reads a certificate in DER. `None` if the bytes are no certificate.
    pub fn parse(certificate: &[u8]) -> Option<Self> {
        let (_, found) = X509Certificate::from_der(certificate).ok()?;
        let validity = found.validity();
        let alternative = found.subject_alternative_name().ok().flatten();
        Some(Self {
            subject: distinguished_name(found.subject()),
            issuer: distinguished_name(found.issuer()),
            validity: format!("{} - {}", moment(validity.not_before), moment(validity.not_after)),
            serial_number: hexadecimal(found.raw_serial()),
            common_names: attributes(found.subject())
                .filter(|(_, oid, _)| oid == COMMON_NAME)
                .map(|(_, _, value)| value)
                .collect(),
            alternative_names: alternative.map_or_else(Vec::new, |names| {
                names
                    .value
                    .general_names
                    .iter()
                    .filter_map(alternative_name)
                    .collect()
            }),
        })
    }

    /// The user's name. `None` if the certificate has no name of this kind.
    pub fn login(&self, from: LoginFrom) -> Option<String> {
        let name = match from {
            LoginFrom::DistinguishedName => self.subject.clone(),
            LoginFrom::CommonName => self.common_names.join(","),
            LoginFrom::AlternativeName(kind, index) => {
                let mut of_kind = self.alternative_names.iter().filter(|(found, _)| *found == kind);
                of_kind.nth(index)?.1.clone()
            }
        };
        (!name.is_empty()).then_some(name)
    }

    /// Whether the owner is the host of this name or address. As where TLS looks at servers, the alternative names alone count,
    /// and in those of hosts a `*` may stand for the whole first part (RFC 9525).
    pub fn is_of_host(&self, host: &str) -> bool {
        let address: Option<IpAddr> = host.parse().ok();
        let is_it = |(kind, name): &(SanType, String)| match (kind, address) {
            (SanType::Ip, Some(address)) => name.parse() == Ok(address),
            (SanType::Dns, None) => names_host(name, host),
            _ => false,
        };
        self.alternative_names.iter().any(is_it)
    }
}

/// Whether a name in a certificate is that of a host.
fn names_host(name: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.');
    match name.strip_prefix("*.") {
        Some(domain) => host
            .split_once('.')
            .is_some_and(|(first, behind)| !first.is_empty() && behind.eq_ignore_ascii_case(domain)),
        None => !host.is_empty() && name.eq_ignore_ascii_case(host),
    }
}

/// All attributes of a name: the number of the part that they are in, their type, their value.
fn attributes(name: &X509Name<'_>) -> impl Iterator<Item = (usize, String, String)> {
    name.iter_rdn().enumerate().flat_map(|(number, part)| {
        part.iter()
            .map(move |it| (number, it.attr_type().to_id_string(), text(it.attr_value())))
    })
}

fn distinguished_name(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (number, oid, value) in attributes(name) {
        let known = ATTRIBUTES.iter().find(|(known, _)| *known == oid);
        let attribute = format!("{}={}", known.map_or(&*oid, |(_, name)| name), escaped(&value));
        match parts.get_mut(number) {
            Some(part) => {
                part.push('+');
                part.push_str(&attribute);
            }
            None => parts.push(attribute),
        }
    }
    parts.reverse();
    parts.join(",")
}

/// RFC 4514's escapes. Like RabbitMQ, everything that is not plain ASCII is written as its UTF-8 bytes.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b' ' if at == 0 || at == last => text.push_str("\\ "),
            b'#' if at == 0 => text.push_str("\\#"),
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            32..126 => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:02X}");
            }
        }
    }
    text
}

/// ASN.1's many ways to write text.
fn text(value: &Any<'_>) -> String {
    let bytes = value.data;
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::NumericString | Tag::VisibleString => {
            lossy(bytes)
        }
        // TeletexString, which the world takes for Latin-1
        Tag::T61String => bytes.iter().copied().map(char::from).collect(),
        Tag::BmpString => {
            let units = bytes
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units)
                .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        Tag::UniversalString => bytes
            .chunks_exact(4)
            .map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
            .map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect(),
        _ => format!("#{}", hexadecimal(bytes)),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A moment in UTC as `2026-01-31T09:05:00Z`, the form in which RabbitMQ shows those of certificates.
pub(crate) fn moment(moment: ASN1Time) -> String {
    let (date, time) = (moment.to_datetime().date(), moment.to_datetime().time());
    let (year, month, day) = date.to_calendar_date();
    let (hour, minute, second) = time.as_hms();
    let month = u8::from(month);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A name of the kinds that a user may have.
fn alternative_name(name: &GeneralName<'_>) -> Option<(SanType, String)> {
    Some(match name {
        GeneralName::OtherName(_, value) => (SanType::OtherName, other_name(value)?),
        GeneralName::RFC822Name(name) => (SanType::Email, (*name).to_owned()),
        GeneralName::DNSName(name) => (SanType::Dns, (*name).to_owned()),
        GeneralName::URI(name) => (SanType::Uri, (*name).to_owned()),
        GeneralName::IPAddress(value) => (SanType::Ip, address(value)?),
        // Letters that the kind forbids: it keeps its place, so that the names after it keep theirs.
        GeneralName::Invalid(Tag(1), value) => (SanType::Email, lossy(value)),
        GeneralName::Invalid(Tag(2), value) => (SanType::Dns, lossy(value)),
        GeneralName::Invalid(Tag(6), value) => (SanType::Uri, lossy(value)),
        _ => return None,
    })
}

/// The text behind the type of an `otherName`, which has a tag of its own around it.
fn other_name(value: &[u8]) -> Option<String> {
    let (_, outer) = Any::from_der(value).ok()?;
    let (_, inner) = Any::from_der(outer.data).ok()?;
    Some(text(&inner))
}

fn address(value: &[u8]) -> Option<String> {
    match value.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).to_string()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType as Made};

    fn certificate() -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.example".into(), "b.example".into()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CountryName, "AT");
        params
            .distinguished_name
            .push(DnType::OrganizationName, "Müller, Söhne");
        params.distinguished_name.push(DnType::CommonName, " jane ");
        params
            .subject_alt_names
            .push(Made::IpAddress("127.0.0.1".parse().unwrap()));
        params
            .subject_alt_names
            .push(Made::Rfc822Name("j@example".try_into().unwrap()));
        params
            .subject_alt_names
            .push(Made::URI("urn:jane".try_into().unwrap()));
        params.serial_number = Some(vec![0x0a, 0xbc].into());
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn names_are_written_as_in_rabbitmq() {
        let found = Certificate::parse(&certificate()).unwrap();
        assert_eq!(
            found.subject,
            "CN=\\ jane\\ ,O=M\\C3\\BCller\\, S\\C3\\B6hne,C=AT"
        );
        assert_eq!(found.issuer, found.subject);
        assert_eq!(found.serial_number, "0abc");
        assert_eq!(found.validity, "1975-01-01T00:00:00Z - 4096-01-01T00:00:00Z");
    }

    #[test]
    fn a_login_is_the_name_that_was_chosen() {
        let found = Certificate::parse(&certificate()).unwrap();
        let login = |from| found.login(from);
        assert_eq!(login(LoginFrom::DistinguishedName), Some(found.subject.clone()));
        assert_eq!(login(LoginFrom::CommonName).as_deref(), Some(" jane "));
        for (kind, index, name) in [
            (SanType::Dns, 0, Some("a.example")),
            (SanType::Dns, 1, Some("b.example")),
            (SanType::Dns, 2, None),
            (SanType::Ip, 0, Some("127.0.0.1")),
            (SanType::Email, 0, Some("j@example")),
            (SanType::Uri, 0, Some("urn:jane")),
            (SanType::OtherName, 0, None),
        ] {
            assert_eq!(
                login(LoginFrom::AlternativeName(kind, index)).as_deref(),
                name,
                "{kind:?} {index}"
            );
        }
    }

    #[test]
    fn a_certificate_is_of_the_hosts_among_its_alternative_names() {
        let mut found = Certificate::parse(&certificate()).unwrap();
        for host in ["a.example", "B.Example", "b.example.", "127.0.0.1"] {
            assert!(found.is_of_host(host), "{host}");
        }
        for host in [
            "",
            "example",
            "c.example",
            "x.a.example",
            "127.0.0.2",
            "jane",
            " jane ",
        ] {
            assert!(!found.is_of_host(host), "{host}");
        }
        found.alternative_names = vec![
            (SanType::Dns, "*.nodes.ns".to_owned()),
            (SanType::Email, "e.x".to_owned()),
        ];
        assert!(found.is_of_host("mq-0.nodes.ns"));
        for host in ["nodes.ns", ".nodes.ns", "a.mq-0.nodes.ns", "e.x", "*.nodes"] {
            assert!(!found.is_of_host(host), "{host}");
        }
    }

    #[test]
    fn a_name_with_forbidden_letters_keeps_its_place() {
        let names =
            |bytes: &[u8]| alternative_name(&GeneralName::try_from(Any::from_der(bytes).unwrap().1).unwrap());
        assert_eq!(
            names(&[0x82, 2, b'a', 0xff]),
            Some((SanType::Dns, "a\u{fffd}".into()))
        );
        assert_eq!(names(&[0x87, 3, 1, 2, 3]), None);
    }

    #[test]
    fn other_names_and_old_texts_are_read() {
        let other = [0xa0, 0x06, 0x0c, 4, b'j', b'a', b'n', b'e'];
        assert_eq!(other_name(&other).as_deref(), Some("jane"));
        for (value, shown) in [
            (&[0x14, 2, b'a', 0xe4][..], "aä"),
            (&[0x1e, 4, 0, b'a', 0x20, 0xac], "a€"),
            (&[0x1c, 4, 0, 1, 0xf4, 0x30], "\u{1f430}"),
            (&[0x02, 1, 1], "#01"),
        ] {
            assert_eq!(text(&Any::from_der(value).unwrap().1), shown);
        }
        assert_eq!(escaped("#a\"b"), "\\#a\\\"b");
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes: Vec<u8>) {
            let _ = Certificate::parse(&bytes);
        }

        #[test]
        fn no_change_of_a_good_one_does_harm(at in 0..300_usize, byte: u8) {
            let mut bytes = certificate();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Certificate::parse(&bytes);
        }
    }
}
