//! What is counted for the node as a whole beside messages: logins, dead letters, sizes.

use super::collect::{Collector, Rows};
use super::family::{DEAD_LETTERED, LOGIN_ATTEMPTS};
use super::page::{Number, Type, labels};
use broker::sight::{SIZE_BOUNDS, SizeCounts};

impl Collector<'_> {
    /// When the node started, which monitors take for a restart when it changes. The name has no prefix, as everywhere.
    pub(super) fn started(&mut self, seconds: u64) {
        let help = "Start time of the process since unix epoch in seconds.";
        self.page.family("process_start_time_seconds", Type::Gauge, help);
        self.page.labelled("", seconds);
    }

    /// Who tried to log in.
    pub(super) fn login_attempts(&mut self) {
        let counts = self.broker.sight().login_attempts().by_door();
        let rows: Rows<3> = counts
            .into_iter()
            .map(|(door, succeeded, failed)| {
                let values = [succeeded + failed, succeeded, failed];
                (labels(&[("protocol", door.name())]), values.map(Number::Whole))
            })
            .collect();
        self.many(LOGIN_ATTEMPTS, &rows);
    }

    /// What died and has a dead-letter exchange. Dead letters of classic queues arrive at least once here.
    pub(super) fn dead_letters(&mut self) {
        let buried = self.broker.sight().buried();
        let dead = labels(&[
            ("queue_type", "rabbit_classic_queue"),
            ("dead_letter_strategy", "at_least_once"),
        ]);
        let [maxlen, rejected, expired, limit] = buried.named().map(|(_, count)| count);
        let values = [buried.confirmed(), limit, expired, maxlen, rejected];
        self.single(DEAD_LETTERED, values.map(Number::Whole), &dead);
    }

    /// How large published messages were.
    pub(super) fn sizes(&mut self, sizes: &SizeCounts) {
        self.page.family(
            "rabbitmq_message_size_bytes",
            Type::Histogram,
            "Size of messages received from publishers",
        );
        let bounds = SIZE_BOUNDS.iter().map(usize::to_string);
        let mut below = 0;
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(sizes.classes) {
            below += count;
            let labels = labels(&[("protocol", "amqp091"), ("le", &bound)]);
            self.page.part("_bucket", &labels, below);
        }
        let protocol = labels(&[("protocol", "amqp091")]);
        self.page.part("_count", &protocol, below);
        self.page.part("_sum", &protocol, sizes.bytes);
    }
}
