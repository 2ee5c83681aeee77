//! What a message looks like on the wire, and how to make millions of them a second.
//!
//! Reading order: [`Messages`] makes a producer's messages, one after the other, from [`template`]s that are written once and
//! copied; [`body`] is where bodies come from; [`stamp`] and [`seal`] are what is written into each.

mod body;
pub mod seal;
pub mod stamp;
mod template;

use crate::clock;
use crate::failure::Failure;
use crate::pace::Phases;
use crate::plan::{BodyPlan, LatencyFrom, Plan};
use crate::topology::Route;
use std::time::Duration;
use template::{Keys, Template, Writing};

/// The messages of one producer.
pub struct Messages {
    templates: Vec<Template>,
    /// With several sizes: which template holds for how long.
    sizes: Option<Phases<usize>>,
    keys: Keys,
    /// The template in use.
    current: usize,
    /// Bodies are used in turn, not by time.
    in_turn: bool,
    start: u64,
    /// When to look again which size holds.
    look_at: u64,
    sequence: u64,
    intended: bool,
    millis: bool,
    /// With `--verify`: the producer's number.
    sealed: Option<u32>,
}

impl Messages {
    /// The messages of producer `producer` on `channel`, with sizes that change from `start` (nanoseconds) on.
    ///
    /// # Errors
    /// If a file with a body can't be read.
    pub fn new(
        plan: &Plan,
        producer: u32,
        channel: u16,
        route: &Route,
        frame_max: u32,
        start: u64,
    ) -> Result<Self, Failure> {
        let bodies = body::bodies(plan)?;
        let writing = Writing {
            plan,
            channel,
            route,
            frame_max,
        };
        let keys = Keys::new(&writing);
        let fixed = keys.is_fixed();
        let templates: Vec<Template> = bodies.iter().map(|body| writing.template(body, fixed)).collect();
        let sizes = match &plan.message.body {
            BodyPlan::VariableSize(sizes) => {
                let indices = sizes.iter().enumerate().map(|(at, (_, time))| (at, *time));
                Some(Phases::new(indices.collect()))
            }
            _ => None,
        };
        Ok(Self {
            in_turn: sizes.is_none() && templates.len() > 1,
            templates,
            sizes,
            keys,
            current: 0,
            start,
            look_at: 0,
            sequence: 0,
            intended: plan.producing.latency_from == LatencyFrom::Intended,
            millis: plan.report.millis,
            sealed: plan.verify.then_some(producer),
        })
    }

    /// How many messages were made; the number of the next one.
    #[inline]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Appends a whole publish that is sent `now` and was due at `intended` (nanoseconds of the monotonic clock).
    #[inline]
    pub fn append(&mut self, out: &mut Vec<u8>, now: u64, intended: u64) {
        if self.sizes.is_some() && now >= self.look_at {
            self.choose_size(now);
        }
        let Some(template) = self.templates.get(self.current) else {
            return;
        };
        self.keys.append(out);
        let lag = now.saturating_sub(intended);
        let sent = if self.millis { clock::unix_ms() } else { now };
        let unit = if self.millis { 1_000_000 } else { 1 };
        let at = out.len();
        out.extend_from_slice(&template.bytes);
        let message = &mut out[at..];
        if let Some(header) = template.header_stamp {
            let stamp = if self.intended { sent - lag / unit } else { sent };
            template::put(message, header, &stamp.to_be_bytes());
        } else {
            let room_for_lag = template.size >= stamp::WITH_LAG;
            let stamp = if self.intended && !room_for_lag {
                sent - lag / unit
            } else {
                sent
            };
            template::put(message, template.body, &(self.sequence as u32).to_be_bytes());
            template::put(message, template.body + stamp::TIME_AT, &stamp.to_be_bytes());
            if self.intended && room_for_lag && lag >= 1000 {
                let lag_us = u32::try_from(lag / 1000).unwrap_or(u32::MAX);
                template::put(message, template.body + stamp::LAG_AT, &lag_us.to_be_bytes());
            }
        }
        if let Some(producer) = self.sealed {
            let end = template.body + seal::LENGTH;
            if let Some(beginning) = message.get_mut(template.body..end) {
                seal::write(beginning, producer, self.sequence, template.filler_crc);
            }
        }
        self.sequence += 1;
        if self.in_turn {
            self.current = (self.current + 1) % self.templates.len();
        }
    }

    /// A size holds for a second at least, so a look every 20 ms is enough.
    fn choose_size(&mut self, now: u64) {
        let elapsed = Duration::from_nanos(now.saturating_sub(self.start));
        if let Some(at) = self.sizes.as_ref().and_then(|sizes| sizes.at(elapsed)) {
            self.current = *at;
        }
        self.look_at = now + 20_000_000;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::plan;
    use crate::subcommand::Request;
    use model::Limits;
    use model::properties::BasicProperties;
    use protocol::amqp::{Assembler, Method, Step, next_frame};

    const SECOND: u64 = 1_000_000_000;

    fn of(line: &str) -> Plan {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match plan(&arguments, &|_| None) {
            Ok(Request::Run(plan)) => *plan,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn messages(line: &str, key: Option<&str>) -> Messages {
        let route = Route {
            exchange: "x".into(),
            routing_key: key.map(str::to_owned),
        };
        Messages::new(&of(line), 3, 1, &route, 4096, 0).unwrap()
    }

    /// Key, properties and body of each message of a buffer.
    fn read(bytes: &[u8]) -> Vec<(String, Vec<u8>, Vec<u8>)> {
        let (mut at, mut assembler, mut all) = (0, Assembler::new(), Vec::new());
        while let Some((frame, used)) = next_frame(&bytes[at..], 4096).unwrap() {
            at += used;
            if let Step::Content(content) = assembler.feed(&frame, &Limits::default()).unwrap() {
                let Method::BasicPublish(publish) = content.method else {
                    panic!()
                };
                let key = String::from_utf8(publish.routing_key.to_vec()).unwrap();
                all.push((key, content.properties.to_vec(), content.body.to_vec()));
            }
        }
        assert_eq!(at, bytes.len());
        all
    }

    #[test]
    fn a_message_carries_its_number_its_time_and_its_lag() {
        let mut it = messages("--size 16", Some("k"));
        let mut out = Vec::new();
        it.append(&mut out, 9_000_000, 2_000_000);
        it.append(&mut out, 9_000_001, 9_000_001);
        let all = read(&out);
        let stamps: Vec<_> = all
            .iter()
            .map(|(_, _, body)| stamp::read(body).unwrap())
            .collect();
        assert_eq!(
            (stamps[0].sequence, stamps[0].sent, stamps[0].lag_us),
            (0, 9_000_000, 7000)
        );
        assert_eq!(
            (stamps[1].sequence, stamps[1].sent, stamps[1].lag_us),
            (1, 9_000_001, 0)
        );
        assert_eq!((all[0].0.as_str(), all[0].2.len()), ("k", 16));
    }

    #[test]
    fn a_body_too_small_for_a_lag_says_when_it_was_due() {
        let mut out = Vec::new();
        messages("--size 0", Some("k")).append(&mut out, 9_000_000, 2_000_000);
        messages("--size 12 --latency-from sent", Some("k")).append(&mut out, 9_000_000, 2_000_000);
        let sent: Vec<_> = read(&out)
            .iter()
            .map(|(_, _, body)| (body.len(), stamp::read(body).unwrap().sent))
            .collect();
        assert_eq!(sent, [(12, 2_000_000), (12, 9_000_000)]);
    }

    #[test]
    fn large_bodies_are_cut_into_frames() {
        let mut out = Vec::new();
        messages("--size 10000 --flag persistent", Some("k")).append(&mut out, 5, 5);
        let (_, properties, body) = read(&out).remove(0);
        assert_eq!(body.len(), 10_000);
        assert_eq!(BasicProperties::new(&properties).delivery_mode(), Some(2));
    }

    #[test]
    fn sizes_change_with_time() {
        let mut it = messages("--variable-size 100:2 --variable-size 5000:1", Some("k"));
        let mut out = Vec::new();
        for second in 0..4 {
            it.append(&mut out, second * SECOND, second * SECOND);
        }
        let sizes: Vec<_> = read(&out).iter().map(|(_, _, body)| body.len()).collect();
        assert_eq!(sizes, [100, 100, 5000, 100]);
    }

    #[test]
    fn random_keys_differ_and_cached_ones_come_again() {
        let mut out = Vec::new();
        let mut random = messages("--random-routing-key", None);
        (0..50).for_each(|_| random.append(&mut out, 1, 1));
        let keys: std::collections::HashSet<_> = read(&out).into_iter().map(|(key, ..)| key).collect();
        assert_eq!(keys.len(), 50);
        out.clear();
        let mut cached = messages("--random-routing-key --routing-key-cache-size 3", None);
        (0..50).for_each(|_| cached.append(&mut out, 1, 1));
        let keys: Vec<_> = read(&out).into_iter().map(|(key, ..)| key).collect();
        assert_eq!(keys[0], keys[3]);
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), 3);
    }

    #[test]
    fn bodies_of_files_come_in_turn_with_their_time_in_a_header() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["one", "three"].map(|name| folder.path().join(name));
        std::fs::write(&paths[0], "1").unwrap();
        std::fs::write(&paths[1], "333").unwrap();
        let line = format!(
            "--body {},{} --body-content-type text/plain --message-properties priority=5,colour=red",
            paths[0].display(),
            paths[1].display()
        );
        let mut it = messages(&line, Some("k"));
        let mut out = Vec::new();
        (0..3).for_each(|n| it.append(&mut out, n + 7, n + 7));
        let all = read(&out);
        let bodies: Vec<_> = all.iter().map(|(_, _, body)| body.as_slice()).collect();
        assert_eq!(bodies, [&b"1"[..], b"333", b"1"]);
        let times: Vec<_> = all
            .iter()
            .map(|(_, it, _)| stamp::from_header(it).unwrap().sent)
            .collect();
        assert_eq!(times, [7, 8, 9]);
        let properties = BasicProperties::new(&all[0].1);
        assert_eq!(
            (properties.content_type(), properties.priority()),
            (Some(&b"text/plain"[..]), Some(5))
        );
        let headers = properties.headers_table(&Limits::default()).unwrap();
        assert_eq!(headers.get("colour").and_then(|it| it.as_str()), Some("red"));
    }

    #[test]
    fn json_bodies_are_json_of_about_the_size_asked_for() {
        let mut it = messages("--json-body --size 2000 --body-count 3", Some("k"));
        let mut out = Vec::new();
        (0..3).for_each(|_| it.append(&mut out, 7, 7));
        for (_, properties, body) in read(&out) {
            assert!(
                serde_json::from_slice::<serde_json::Value>(&body)
                    .unwrap()
                    .is_object()
            );
            assert!(body.len().abs_diff(2000) < 200, "{}", body.len());
            assert_eq!(
                BasicProperties::new(&properties).content_type(),
                Some(&b"application/json"[..])
            );
        }
    }

    #[test]
    fn producers_share_the_json_bodies_that_were_asked_for() {
        let bodies = |line: &str| messages(line, Some("k")).templates.len();
        assert_eq!(bodies("--json-body --size 100 --body-count 30"), 30);
        assert_eq!(bodies("--json-body --size 100 --body-count 30 --producers 4"), 8);
        assert_eq!(
            bodies("--json-body --size 100 --producers 50 --producer-channel-count 9"),
            1
        );
    }

    #[test]
    fn a_sealed_message_names_its_producer_and_number() {
        let mut it = messages("--verify --size 100", Some("k"));
        let mut out = Vec::new();
        (0..2).for_each(|_| it.append(&mut out, 7, 7));
        let found = read(&out)
            .into_iter()
            .map(|(_, _, body)| seal::read(&body).unwrap());
        let found: Vec<_> = found.map(|it| (it.ours, it.producer, it.sequence)).collect();
        assert_eq!(found, [(true, 3, 0), (true, 3, 1)]);
    }

    #[test]
    fn a_missing_file_is_named() {
        let route = Route {
            exchange: "x".into(),
            routing_key: None,
        };
        let mut plan = of("--size 12");
        plan.message.body = BodyPlan::Files(vec!["no/such/file".into()]);
        let Err(Failure::File(text)) = Messages::new(&plan, 0, 1, &route, 4096, 0) else {
            panic!()
        };
        assert!(text.contains("no/such/file"), "{text}");
    }
}
