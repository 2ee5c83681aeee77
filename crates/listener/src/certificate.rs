//! Who a certificate says its owner is, in RabbitMQ's words (`rabbit_cert_info`).

use crate::der::{self, Der};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

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
const ALTERNATIVE_NAMES: &str = "2.5.29.17";

impl Certificate {
    /// Reads a certificate in DER. `None` if it is none.
    pub fn parse(certificate: &[u8]) -> Option<Self> {
        let mut outer = Der(Der(certificate).expect(der::SEQUENCE)?);
        let mut body = Der(outer.expect(der::SEQUENCE)?);
        body.optional(0xa0); // the version
        let serial_number = hexadecimal(body.expect(der::INTEGER)?);
        body.expect(der::SEQUENCE)?; // the signature's algorithm
        let issuer = body.expect(der::SEQUENCE)?;
        let mut validity = Der(body.expect(der::SEQUENCE)?);
        let (from, until) = (time(validity.next()?), time(validity.next()?));
        let subject = body.expect(der::SEQUENCE)?;
        body.expect(der::SEQUENCE)?; // the public key
        body.optional(0x81); // two unique identifiers that nobody uses
        body.optional(0x82);
        let extensions = body.optional(0xa3);
        Some(Self {
            subject: distinguished_name(subject),
            issuer: distinguished_name(issuer),
            validity: format!("{from} - {until}"),
            serial_number,
            common_names: attributes(subject)
                .filter(|(_, oid, _)| oid == COMMON_NAME)
                .map(|(_, _, value)| value)
                .collect(),
            alternative_names: extensions.map(alternative_names).unwrap_or_default(),
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
}

/// All attributes of a name: the number of the part that they are in, their type, their value.
fn attributes(name: &[u8]) -> impl Iterator<Item = (usize, String, String)> {
    let mut parts = Der(name);
    let parts = std::iter::from_fn(move || parts.expect(der::SET)).enumerate();
    parts.flat_map(|(number, part)| {
        let mut part = Der(part);
        let values = std::iter::from_fn(move || part.expect(der::SEQUENCE));
        values.filter_map(move |value| {
            let mut value = Der(value);
            let oid = der::dotted(value.expect(der::OID)?);
            let (tag, contents) = value.next()?;
            Some((number, oid, text(tag, contents)))
        })
    })
}

fn distinguished_name(name: &[u8]) -> String {
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
fn text(tag: u8, bytes: &[u8]) -> String {
    match tag {
        // UTF8String, PrintableString, IA5String, NumericString, VisibleString
        0x0c | 0x13 | 0x16 | 0x12 | 0x1a => String::from_utf8_lossy(bytes).into_owned(),
        // TeletexString, which the world takes for Latin-1
        0x14 => bytes.iter().copied().map(char::from).collect(),
        // BMPString
        0x1e => {
            let units = bytes
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units)
                .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        // UniversalString
        0x1c => bytes
            .chunks_exact(4)
            .map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
            .map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect(),
        _ => format!("#{}", hexadecimal(bytes)),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `UTCTime` has two digits for the year, which end in 2049 (RFC 5280), `GeneralizedTime` four.
fn time((tag, bytes): (u8, &[u8])) -> String {
    let digits = String::from_utf8_lossy(bytes).into_owned();
    let long = match tag {
        0x17 if digits.as_str() < "50" => format!("20{digits}"),
        0x17 => format!("19{digits}"),
        _ => digits,
    };
    let part = |from: usize, to: usize| long.get(from..to);
    match (
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14),
    ) {
        (Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)) => {
            format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")
        }
        _ => long,
    }
}

fn alternative_names(extensions: &[u8]) -> Vec<(SanType, String)> {
    let mut list = Der(Der(extensions).expect(der::SEQUENCE).unwrap_or_default());
    let contents = std::iter::from_fn(|| list.expect(der::SEQUENCE)).find_map(|extension| {
        let mut extension = Der(extension);
        let oid = extension.expect(der::OID)?;
        extension.optional(der::BOOLEAN);
        (der::dotted(oid) == ALTERNATIVE_NAMES).then(|| extension.expect(der::OCTETS))?
    });
    let mut names = Der(Der(contents.unwrap_or_default())
        .expect(der::SEQUENCE)
        .unwrap_or_default());
    let mut found = Vec::new();
    while let Some((tag, value)) = names.next() {
        let plain = || String::from_utf8_lossy(value).into_owned();
        match tag {
            0xa0 => found.extend(other_name(value).map(|name| (SanType::OtherName, name))),
            0x81 => found.push((SanType::Email, plain())),
            0x82 => found.push((SanType::Dns, plain())),
            0x86 => found.push((SanType::Uri, plain())),
            0x87 => found.extend(address(value).map(|address| (SanType::Ip, address))),
            _ => {}
        }
    }
    found
}

fn other_name(value: &[u8]) -> Option<String> {
    let mut parts = Der(value);
    parts.expect(der::OID)?;
    let (tag, contents) = Der(parts.expect(0xa0)?).next()?;
    Some(text(tag, contents))
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
    fn other_names_and_old_texts_are_read() {
        let other = [
            0x06, 0x03, 0x2a, 3, 4, 0xa0, 0x06, 0x0c, 4, b'j', b'a', b'n', b'e',
        ];
        assert_eq!(other_name(&other).as_deref(), Some("jane"));
        assert_eq!(text(0x14, &[b'a', 0xe4]), "aä");
        assert_eq!(text(0x1e, &[0, b'a', 0x20, 0xac]), "a€");
        assert_eq!(text(0x1c, &[0, 1, 0xf4, 0x30]), "\u{1f430}");
        assert_eq!(text(0x02, &[1]), "#01");
        assert_eq!(escaped("#a\"b"), "\\#a\\\"b");
        assert_eq!(time((0x17, b"500101000000Z")), "1950-01-01T00:00:00Z");
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
