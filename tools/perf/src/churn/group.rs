//! Turns that a worker takes together: the first operation of all of them, many under way at a time, then the second of all.
//! So few connections keep a broker as busy as many that wait for each answer.

use super::what::What;
use super::worker::{CHANNEL, Worker, since};
use crate::client::Client;
use crate::clock;
use crate::failure::Failure;
use protocol::amqp::method::{QueueBind, QueueDelete, QueueUnbind};
use protocol::amqp::{Arguments, Method, encode};
use std::collections::VecDeque;

/// How many operations of a worker are under way at a time.
const IN_FLIGHT: usize = 200;

impl Worker {
    /// Does so many turns together. An operation counts from the moment when it was written, the first ones from `due` if they
    /// go by a schedule: from when the last of these turns was due.
    pub(super) fn group(&mut self, turns: usize, due: Option<u64>) -> Result<(), Failure> {
        let job = self.job.clone();
        let site = &job.site;
        if job.options.what() == What::Queue {
            let names: Vec<String> = (0..turns).map(|_| self.fresh_queue()).collect();
            let declared = |method: &Method<'_>| matches!(method, Method::QueueDeclareOk(_)).then_some(());
            self.ask_all(
                (0, due),
                &names,
                |frames, name| site.encode_declare(frames, CHANNEL, name),
                declared,
            )?;
            let delete = |frames: &mut Vec<u8>, name: &str| {
                let queue = name;
                method(
                    frames,
                    &QueueDelete {
                        queue,
                        ..Default::default()
                    },
                );
            };
            let deleted = |method: &Method<'_>| matches!(method, Method::QueueDeleteOk(_)).then_some(());
            self.ask_all((1, None), &names, delete, deleted)?;
            site.forget(&names);
            return Ok(());
        }
        let keys: Vec<String> = (0..turns).map(|_| site.key(self.number)).collect();
        let (queue, exchange) = (self.queue.clone(), site.exchange.as_str());
        let bind = |frames: &mut Vec<u8>, routing_key: &str| {
            method(
                frames,
                &QueueBind {
                    queue: &queue,
                    exchange,
                    routing_key,
                    ..Default::default()
                },
            );
        };
        let bound = |method: &Method<'_>| matches!(method, Method::QueueBindOk(_)).then_some(());
        self.ask_all((0, due), &keys, bind, bound)?;
        let unbind = |frames: &mut Vec<u8>, routing_key: &str| {
            method(
                frames,
                &QueueUnbind {
                    queue: &queue,
                    exchange,
                    routing_key,
                    ..Default::default()
                },
            );
        };
        let unbound = |method: &Method<'_>| matches!(method, Method::QueueUnbindOk(_)).then_some(());
        self.ask_all((1, None), &keys, unbind, unbound)
    }

    /// Asks for all of `names` in order, and waits for all answers. `operation` has its number, and from when it counts if not
    /// from the moment when it is written.
    fn ask_all(
        &mut self,
        (operation, due): (usize, Option<u64>),
        names: &[String],
        encode: impl Fn(&mut Vec<u8>, &str),
        mut is_answer: impl FnMut(&Method<'_>) -> Option<()>,
    ) -> Result<(), Failure> {
        let (job, number) = (self.job.clone(), self.number);
        let client: &mut Client = self.client()?;
        let mut names = names.iter();
        let mut written: VecDeque<u64> = VecDeque::with_capacity(IN_FLIGHT);
        loop {
            if names.len() > 0 && written.len() <= IN_FLIGHT / 2 {
                let mut frames = Vec::new();
                let room = IN_FLIGHT - written.len();
                let count = names
                    .by_ref()
                    .take(room)
                    .map(|name| encode(&mut frames, name))
                    .count();
                written.extend(std::iter::repeat_n(due.unwrap_or_else(clock::now), count));
                client.write(&frames)?;
            }
            let Some(from) = written.pop_front() else {
                return Ok(());
            };
            client.answer(CHANNEL, job.options.what().name(), &mut is_answer)?;
            job.results.record(number, operation, since(from));
        }
    }
}

fn method<'m>(frames: &mut Vec<u8>, arguments: &impl Arguments<'m>) {
    encode::method(frames, CHANNEL, arguments);
}
