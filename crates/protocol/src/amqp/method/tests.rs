use super::*;
use crate::amqp::encode;
use crate::amqp::field::{LongStr, RawTable};
use crate::amqp::frame::{Part, next_frame};
use proptest::prelude::*;

fn decoded(id: MethodId, fields: &[u8]) -> Method<'_> {
    Method::decode(id, fields).unwrap()
}

/// Arguments of random content that a method of any number may have: enough bytes, zeros last, so that most
/// methods can be cut out of them.
fn any_fields() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        prop_oneof![3 => 0u8..4, 1 => b'a'..=b'z', 1 => any::<u8>()],
        0..60,
    )
}

proptest! {
    #[test]
    fn whatever_decodes_encodes_to_what_decodes_the_same(fields in any_fields(), at in any::<prop::sample::Index>()) {
        let id = *at.get(Method::ALL);
        // The arguments have no length of their own, so the right one is found by trying.
        for length in 0..=fields.len() {
            if let Ok(method) = Method::decode(id, &fields[..length]) {
                let mut out = Vec::new();
                method.encode(&mut out);
                prop_assert_eq!(Method::decode(id, &out), Ok(method));
                prop_assert_eq!(method.id(), id);
            }
        }
    }

    #[test]
    fn declarations_survive_the_frame(
        queue in "[a-zé.]{0,40}", table in prop::collection::vec(any::<u8>(), 0..40), bits in any::<[bool; 5]>(),
    ) {
        let method = QueueDeclare {
            queue: &queue,
            passive: bits[0],
            durable: bits[1],
            exclusive: bits[2],
            auto_delete: bits[3],
            no_wait: bits[4],
            arguments: RawTable(&table),
        };
        let mut out = Vec::new();
        encode::method(&mut out, 5, &method);
        let (frame, used) = next_frame(&out, 4096).unwrap().unwrap();
        prop_assert_eq!((frame.channel, used), (5, out.len()));
        let Ok(Part::Method(id, fields)) = frame.part() else { panic!("{frame:?}") };
        prop_assert_eq!(Method::decode(id, fields), Ok(Method::QueueDeclare(method)));
    }

    #[test]
    fn no_arguments_make_it_panic(class in 0u16..100, method in 0u16..130, fields in any_fields()) {
        if let Err(error) = Method::decode(MethodId { class, method }, &fields) {
            let _ = error.exception().reply_text();
        }
    }
}

#[test]
fn every_method_writes_what_it_reads() {
    for id in Method::ALL {
        // Zeros are the defaults of all types, and one of these lengths is the method's own.
        let length = (0..40).find(|length| Method::decode(*id, &[0; 40][..*length]).is_ok());
        let zeros = vec![0; length.unwrap_or_else(|| panic!("{id}"))];
        let mut out = Vec::new();
        let method = decoded(*id, &zeros);
        method.encode(&mut out);
        assert_eq!(out, zeros, "{id}");
        out.clear();
        encode::any_method(&mut out, 1, &method);
        assert_eq!(&out[7..11], id.to_bytes());
        assert!(id.name().is_some());
    }
    assert_eq!(Method::ALL.len(), 66);
}

#[test]
fn methods_have_their_golden_bytes() {
    let mut out = Vec::new();
    let publish = BasicPublish {
        exchange: b"e",
        routing_key: b"key",
        mandatory: true,
        immediate: false,
    };
    publish.encode(&mut out);
    assert_eq!(out, b"\0\0\x01e\x03key\x01");
    out.clear();
    BasicConsume {
        queue: "q",
        no_ack: true,
        no_wait: true,
        ..Default::default()
    }
    .encode(&mut out);
    assert_eq!(out, b"\0\0\x01q\0\x0a\0\0\0\0");
    out.clear();
    ConnectionStartOk {
        mechanism: "PLAIN",
        response: LongStr(b"\0a\0b"),
        ..Default::default()
    }
    .encode(&mut out);
    assert_eq!(out, b"\0\0\0\0\x05PLAIN\0\0\0\x04\0a\0b\0");
    out.clear();
    ConnectionOpen { virtual_host: "/" }.encode(&mut out);
    assert_eq!(out, b"\x01/\0\0");
}

#[test]
fn names_and_contents_are_known() {
    assert_eq!(BasicPublish::ID.to_string(), "basic.publish");
    assert_eq!(BasicPublish::NAME, "basic.publish");
    assert_eq!(
        MethodId {
            class: 60,
            method: 99
        }
        .to_string(),
        "60.99"
    );
    let with_content: Vec<_> = Method::ALL
        .iter()
        .filter(|id| id.has_content())
        .filter_map(|id| id.name())
        .collect();
    assert_eq!(
        with_content,
        ["basic.publish", "basic.return", "basic.deliver", "basic.get-ok"]
    );
}

#[test]
fn what_cannot_be_decoded_is_refused_in_rabbitmqs_words() {
    let refusal = |id, fields| Method::decode(id, fields).unwrap_err().exception();
    let exception = refusal(BasicAck::ID, b"\x01\x02\x03");
    assert_eq!(exception.reply_text(), "FRAME_ERROR - cannot decode <<1,2,3>>");
    assert_eq!(exception.method, BasicAck::ID);
    assert_eq!(
        refusal(ChannelCloseOk::ID, b"\x01").reply_text(),
        "FRAME_ERROR - cannot decode <<1>>"
    );
    let exception = refusal(QueueDelete::ID, b"\0\0\x01\xff\0");
    assert_eq!(
        exception.reply_text(),
        "FRAME_ERROR - Malformed UTF-8 in shortstr"
    );
    assert_eq!(exception.method, MethodId::NONE);
    assert_eq!(
        refusal(ConnectionOpen::ID, b"\x01\xff\0\0").method,
        ConnectionOpen::ID
    );
    let unknown = MethodId {
        class: 60,
        method: 99,
    };
    assert_eq!(refusal(unknown, b"").code, ReplyCode::NotImplemented);
    assert!(refusal(BasicAck::ID, &[200; 1000]).reply_text().len() <= 255);
    // Names in a publish may be any bytes.
    assert!(Method::decode(BasicPublish::ID, b"\0\0\x01\xff\x01\xfe\0").is_ok());
}
