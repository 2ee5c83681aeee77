//! What concerns the node as a whole: its resources, logins, dead letters, sizes.

use super::collect::{Collector, Rows};
use super::family::{ALARMS, CHURN, DEAD_LETTERED, LOG, LOGIN_ATTEMPTS, NODE, NODE_COARSE, PEERS};
use super::page::{Number, Type, labels};
use super::pages::Endpoint;
use crate::message_stats::loss_places;
use crate::usage::{file_limit, open_files};
use broker::QueueKind;
use broker::stats::{SIZE_BOUNDS, SizeCounts};

impl Collector<'_> {
    /// All of it, and what everything comes to.
    pub fn node(&mut self) {
        let status = self.broker.status();
        if self.wanted.has("connection_churn_metrics") {
            let churn = self.broker.stats().churn().named();
            self.single(CHURN, churn.map(|(_, count)| count.into()), "");
        }
        if self.wanted.has("auth_attempt_metrics") {
            self.login_attempts();
        }
        if self.wanted.has("node_coarse_metrics") {
            let values = [
                Number::Whole(open_files()),
                status.memory.into(),
                status.disk_free.into(),
            ];
            self.single(NODE_COARSE, values, "");
        }
        if self.wanted.has("node_metrics") {
            let values = [
                Number::Whole(file_limit()),
                status.memory_limit.into(),
                status.disk_free_limit.into(),
                (status.uptime_ms as f64 / 1000.0).into(),
            ];
            self.single(NODE, values, "");
        }
        if self.wanted.has("node_persister_metrics") {
            self.single(LOG, [status.log_syncs.into()], "");
        }
        if self.wanted.endpoint != Endpoint::Detailed {
            let on = |alarm: bool| Number::Whole(alarm.into());
            let unreachable = self.members.iter().filter(|member| !member.is_running).count();
            self.single(PEERS, [unreachable.into()], "");
            self.single(ALARMS, [on(status.memory_alarm), on(status.disk_alarm)], "");
            self.totals();
            self.own_work();
            self.links();
            self.catalog();
        }
    }

    /// When the node started, which monitors take for a restart when it changes. The name has no prefix, as everywhere.
    pub(super) fn started(&mut self, seconds: u64) {
        let help = "Start time of the process since unix epoch in seconds.";
        self.page.family("process_start_time_seconds", Type::Gauge, help);
        self.page.labelled("", seconds);
    }

    /// Who tried to log in.
    fn login_attempts(&mut self) {
        let counts = self.broker.stats().login_attempts().by_protocol();
        let rows: Rows<3> = counts
            .into_iter()
            .map(|(protocol, succeeded, failed)| {
                let values = [succeeded + failed, succeeded, failed];
                (labels(&[("protocol", protocol)]), values.map(Number::Whole))
            })
            .collect();
        self.many(LOGIN_ATTEMPTS, &rows);
    }

    /// What died, with a dead-letter exchange and without. Dead letters of classic queues arrive at least once here.
    pub(super) fn dead_letters(&mut self) {
        let counts = self.broker.stats().dead_letters();
        let dead = labels(&[
            ("queue_type", QueueKind::default().module()),
            ("dead_letter_strategy", "at_least_once"),
        ]);
        let [maxlen, rejected, expired, limit] = counts.named().map(|(_, count)| count);
        let values = [counts.confirmed(), limit, expired, maxlen, rejected];
        let gone = labels(&[
            ("queue_type", QueueKind::default().module()),
            ("dead_letter_strategy", "disabled"),
        ]);
        let losses = self.broker.losses().numbers();
        let dropped = |name| loss_places(name).into_iter().map(|at| losses[at]).sum::<u64>();
        let without = [
            0,
            dropped("dropped_delivery_limit"),
            dropped("dropped_expired"),
            dropped("dropped_maxlen"),
            dropped("dropped_rejected"),
        ];
        let rows = vec![
            (dead, values.map(Number::Whole)),
            (gone, without.map(Number::Whole)),
        ];
        self.many(DEAD_LETTERED, &rows);
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
