//! Everything added up.

use super::collect::Collector;
use super::family::{
    CHANNEL, CHANNEL_COUNTS, CONNECTION, CONNECTION_COARSE, EXCHANGE, EXCHANGE_OUTCOMES, GLOBAL,
    GLOBAL_QUEUES, QUEUE, QUEUE_COARSE, QUEUE_CONSUMERS, QUEUE_DELIVERY, TOTALS,
};
use super::objects::{gauges, holdings};
use super::page::{Number, labels};
use broker::QueueKind;

impl Collector<'_> {
    /// How much there is, and what happened since the start.
    pub(super) fn totals(&mut self) {
        let connections = self.broker.stats().connections();
        let (mut channels, mut publishers) = (0_usize, 0_u64);
        for channel in connections.iter().flat_map(|connection| connection.channels()) {
            channels += 1;
            publishers += u64::from(channel.counts.messages.publish.get() > 0);
        }
        // Those of this node, which monitors add up over all nodes, and not those that exchanges keep for themselves.
        let (mut consumers, mut queues) = (0, 0_u64);
        self.broker.queues().for_each(|queue| {
            consumers += queue.status().consumers;
            queues += u64::from(queue.kind().is_of_clients());
        });
        let values = [
            connections.len().into(),
            channels.into(),
            consumers.into(),
            queues.into(),
        ];
        self.single(TOTALS, values, "");
        let sum = self.broker.stats().total();
        let [
            publish,
            confirm,
            returned,
            dropped,
            deliver,
            deliver_no_ack,
            get,
            get_no_ack,
            get_empty,
            ack,
            redeliver,
        ] = sum.messages;
        let routed = self.broker.stats().exchanges().routed();
        let values = [
            publish,
            sum.to_confirm,
            routed,
            dropped,
            returned,
            confirm,
            publishers,
            consumers,
        ];
        let protocol = labels(&[("protocol", "amqp091")]);
        self.single(GLOBAL, values.map(Number::Whole), &protocol);
        self.sizes(&sum.sizes);
        let handed = deliver + deliver_no_ack + get + get_no_ack;
        let values = [
            handed,
            deliver,
            deliver_no_ack,
            get,
            get_no_ack,
            get_empty,
            redeliver,
            ack,
        ];
        let kind = QueueKind::default().module();
        let both = labels(&[("protocol", "amqp091"), ("queue_type", kind)]);
        self.single(GLOBAL_QUEUES, values.map(Number::Whole), &both);
        self.dead_letters();
    }

    /// Queues, channels and connections added up.
    pub fn sums(&mut self) {
        let mut coarse = [0; 3];
        let (mut consumers, mut more, mut delivery) = (0, [0; 11], [0; 8]);
        self.broker.queues().for_each(|queue| {
            let status = queue.status();
            add(
                &mut coarse,
                [status.ready, status.unacked, status.ready + status.unacked],
            );
            consumers += status.consumers;
            add(&mut more, holdings(&status));
            add(&mut delivery, queue.counts().numbers());
        });
        self.single(QUEUE_COARSE, coarse.map(Number::Whole), "");
        self.single(QUEUE_CONSUMERS, [consumers.into()], "");
        let [_, _, held @ ..] = QUEUE;
        self.single(held, more.map(Number::Whole), "");
        self.single(QUEUE_DELIVERY, delivery.map(Number::Whole), "");
        let mut channels = [0; 7];
        let mut packets = [0; 3];
        for connection in self.broker.stats().connections() {
            add(
                &mut packets,
                [
                    connection.reads.get(),
                    connection.writes.get(),
                    connection.channel_count() as u64,
                ],
            );
            connection
                .channels()
                .iter()
                .for_each(|channel| add(&mut channels, gauges(channel)));
        }
        let sum = self.broker.stats().total();
        self.single(CHANNEL, channels.map(Number::Whole), "");
        self.single(CHANNEL_COUNTS, sum.messages.map(Number::Whole), "");
        self.single(
            CONNECTION_COARSE,
            [sum.received_bytes.into(), sum.sent_bytes.into()],
            "",
        );
        self.single(CONNECTION, packets.map(Number::Whole), "");
        let exchanges = self.broker.stats().exchanges().all();
        let published: u64 = exchanges.iter().map(|(_, _, counts)| counts.publish_in()).sum();
        self.single(EXCHANGE, [published.into()], "");
        let [_, confirmed, returned, dropped, ..] = sum.messages;
        let outcomes = [confirmed, returned, dropped].map(Number::Whole);
        self.single(EXCHANGE_OUTCOMES, outcomes, "");
    }
}

fn add<const N: usize>(sums: &mut [u64; N], numbers: [u64; N]) {
    sums.iter_mut()
        .zip(numbers)
        .for_each(|(sum, number)| *sum += number);
}
