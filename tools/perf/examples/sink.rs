//! A broker that does nothing: what is published to it is dropped, and a consumer gets made-up messages as fast as it reads.
//! It shows what the load generator itself can do.
//!
//! ```text
//! cargo run --release -p leveret-perf --example sink -- 5699 16
//! leveret perf --uri amqp://localhost:5699 -x 1 -y 0 --size 16 --time 5     publishing into it
//! leveret perf --uri amqp://localhost:5699 -x 0 -y 1 --size 16 --time 5     consuming from it
//! ```

use protocol::amqp::frame::{END, HEAD, METHOD, OVERHEAD};
use protocol::amqp::method::*;
use protocol::amqp::{LongStr, Method, Part, RawTable, encode, next_frame};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

const BUFFER: usize = 256 * 1024;
/// Deliveries in a write.
const BATCH: usize = 640;

fn main() -> std::io::Result<()> {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|it| it.parse().ok())
        .collect();
    let (port, size) = match arguments[..] {
        [port, size, ..] => (port as u16, size),
        [port] => (port as u16, 16),
        [] => (5699, 16),
    };
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("listening on 127.0.0.1:{port}, deliveries have bodies of {size} bytes");
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || {
            if let Err(error) = serve(stream, size) {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

/// Answers whatever a client asks with yes, until it goes.
fn serve(mut stream: TcpStream, size: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut header = [0; 8];
    stream.read_exact(&mut header)?;
    let mut out = Vec::new();
    let start = ConnectionStart {
        version_major: 0,
        version_minor: 9,
        server_properties: RawTable(b"\x07productS\0\0\0\x04sink"),
        mechanisms: LongStr(b"PLAIN"),
        locales: LongStr(b"en_US"),
    };
    encode::method(&mut out, 0, &start);
    stream.write_all(&out)?;
    let mut buffer = vec![0; BUFFER];
    let (mut filled, mut skip, mut published) = (0, 0usize, 0u64);
    let began = Instant::now();
    loop {
        let read = stream.read(&mut buffer[filled..])?;
        if read == 0 {
            break;
        }
        filled += read;
        let mut at = 0;
        out.clear();
        while at < filled {
            let skipped = skip.min(filled - at);
            skip -= skipped;
            at += skipped;
            let rest = &buffer[at..filled];
            if rest.len() < HEAD + 4 {
                break;
            }
            let length = u32::from_be_bytes([rest[3], rest[4], rest[5], rest[6]]) as usize + OVERHEAD;
            let publish = rest[0] == METHOD && rest[HEAD..HEAD + 4] == [0, 60, 0, 40];
            if rest[0] != METHOD || publish {
                published += u64::from(publish);
                skip = length;
                continue;
            }
            if rest.len() < length {
                break;
            }
            if answer(&rest[..length], &mut out) {
                let consumer = stream.try_clone()?;
                thread::spawn(move || deliver(consumer, size));
            }
            at += length;
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
        stream.write_all(&out)?;
    }
    if published > 0 {
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "{published} messages in {seconds:.1} s: {:.0} a second",
            published as f64 / seconds
        );
    }
    Ok(())
}

/// Says yes; true if deliveries are to begin.
fn answer(frame: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(Some((frame, _))) = next_frame(frame, 0) else {
        return false;
    };
    let Ok(Part::Method(id, fields)) = frame.part() else {
        return false;
    };
    let channel = frame.channel;
    match Method::decode(id, fields) {
        Ok(Method::ConnectionStartOk(_)) => encode::method(
            out,
            0,
            &ConnectionTune {
                channel_max: 2047,
                frame_max: 131_072,
                heartbeat: 0,
            },
        ),
        Ok(Method::ConnectionOpen(_)) => encode::method(out, 0, &ConnectionOpenOk {}),
        Ok(Method::ConnectionClose(_)) => encode::method(out, 0, &ConnectionCloseOk {}),
        Ok(Method::ChannelOpen(_)) => encode::method(out, channel, &ChannelOpenOk {}),
        Ok(Method::ChannelClose(_)) => encode::method(out, channel, &ChannelCloseOk {}),
        Ok(Method::ExchangeDeclare(_)) => encode::method(out, channel, &ExchangeDeclareOk {}),
        Ok(Method::QueueBind(_)) => encode::method(out, channel, &QueueBindOk {}),
        Ok(Method::QueueDelete(_)) => encode::method(out, channel, &QueueDeleteOk { message_count: 0 }),
        Ok(Method::ExchangeDelete(_)) => encode::method(out, channel, &ExchangeDeleteOk {}),
        Ok(Method::BasicQos(_)) => encode::method(out, channel, &BasicQosOk {}),
        Ok(Method::ConfirmSelect(_)) => encode::method(out, channel, &ConfirmSelectOk {}),
        Ok(Method::QueueDeclare(it)) => encode::method(
            out,
            channel,
            &QueueDeclareOk {
                queue: if it.queue.is_empty() { "sink" } else { it.queue },
                message_count: 0,
                consumer_count: 0,
            },
        ),
        Ok(Method::BasicConsume(it)) => {
            encode::method(
                out,
                channel,
                &BasicConsumeOk {
                    consumer_tag: it.consumer_tag,
                },
            );
            return true;
        }
        _ => {}
    }
    false
}

/// Delivers until the client is gone.
fn deliver(mut stream: TcpStream, size: usize) {
    let mut one = Vec::new();
    let method = BasicDeliver {
        consumer_tag: "consumer-0-0",
        delivery_tag: 1,
        exchange: b"direct",
        routing_key: b"key",
        ..BasicDeliver::default()
    };
    encode::content(&mut one, 1, &method, &[0, 0], &vec![0; size.max(12)], 131_072);
    debug_assert_eq!(one.last(), Some(&END));
    let stamp_at = one.len() - 1 - size.max(12) + 4;
    let mut batch = one.repeat(BATCH);
    loop {
        let stamp = perf::clock::now().to_be_bytes();
        for message in batch.chunks_exact_mut(one.len()) {
            message[stamp_at..stamp_at + 8].copy_from_slice(&stamp);
        }
        if stream.write_all(&batch).is_err() {
            return;
        }
    }
}
