//! One connection that makes things and takes them away.

use super::options::Options;
use super::pool::Pool;
use super::publisher::Publisher;
use super::results::Results;
use super::site::{Site, is_short};
use super::turns::{Turns, begin};
use super::what::{BIND_ALL, What};
use crate::client::Client;
use crate::clock;
use crate::failure::Failure;
use crate::plan::Plan;
use model::table::Table;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// The channel of a worker, and one that comes and goes.
pub const CHANNEL: u16 = 1;
const COMING_AND_GOING: u16 = 2;
/// After an error a connection is opened anew, after a pause; so often in a row.
const PAUSE: Duration = Duration::from_millis(200);
const FAILURES_MOST: u32 = 10;
/// How long after a deletion the next queue is filled, and after that it is deleted, in nanoseconds.
const CALM_NS: u64 = 100_000_000;
/// How often a waiting worker looks whether it should stop.
const GLANCE: Duration = Duration::from_millis(50);

/// What all workers share.
pub struct Job {
    pub options: Options,
    /// Address, properties of connections, id.
    pub plan: Plan,
    pub site: Site,
    pub results: Results,
    pub pool: Pool,
    pub stop: AtomicBool,
    /// Deletions under way, and begun so far.
    pub deleting: AtomicUsize,
    pub deletions: AtomicUsize,
    /// Workers that have failed too often.
    pub gave_up: AtomicUsize,
}

impl Job {
    pub fn stops(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// If the broker can't be reached or lets us not in.
    pub fn connect(&self, name: &str) -> Result<Client, Failure> {
        let plan = &self.plan;
        let uri = plan
            .uris
            .first()
            .ok_or_else(|| Failure::Usage("there is no address".into()))?;
        Client::open(uri, &plan.connection, name, &plan.id, None)
    }
}

/// See the module.
pub struct Worker {
    pub(super) number: usize,
    pub(super) job: Arc<Job>,
    publisher: Option<Publisher>,
    pub(super) queue: String,
    /// Two keys that its queue is bound with, for events.
    keys: [String; 2],
    /// Queues that it has made so far.
    queues: u64,
    /// A queue with bindings, ready to be deleted.
    filled: Option<String>,
}

impl Worker {
    /// Connects and makes what it needs, with its share of the preload.
    ///
    /// # Errors
    /// If the broker can't be reached or refuses.
    pub fn prepare(number: usize, job: Arc<Job>) -> Result<Self, Failure> {
        let keys = [job.site.key(number), job.site.key(number)];
        let queue = job.site.worker_queue(number);
        let mut worker = Self {
            number,
            job,
            publisher: None,
            queue,
            keys,
            queues: 0,
            filled: None,
        };
        worker.open()?;
        worker.preload()?;
        Ok(worker)
    }

    /// What is needed anew after a connection was lost.
    fn open(&mut self) -> Result<(), Failure> {
        let job = self.job.clone();
        let what = job.options.what();
        if what == What::Connection && !self.has_queue() {
            return Ok(());
        }
        let mut publisher = Publisher::new(
            job.connect(&format!("perf-churn-{}", self.number))?,
            what.publishes(),
        )?;
        if self.has_queue() {
            job.site
                .declare_queue(&mut publisher.client, CHANNEL, &self.queue, is_short(what))?;
        }
        if what.publishes() {
            for key in &self.keys {
                publisher
                    .client
                    .bind_queue(CHANNEL, &self.queue, &job.site.exchange, key)?;
            }
        }
        self.publisher = Some(publisher);
        Ok(())
    }

    fn has_queue(&self) -> bool {
        let options = &self.job.options;
        options.what().needs_queue() || (options.preload > 0 && !options.fills_queues())
    }

    fn preload(&mut self) -> Result<(), Failure> {
        let job = self.job.clone();
        if job.options.fills_queues() {
            return self.fill_queue(false);
        }
        let workers = u64::from(job.options.concurrency);
        let all = job.options.preload;
        let share = all / workers + u64::from((self.number as u64) < all % workers);
        if share > 0
            && let Some(publisher) = &mut self.publisher
        {
            let client = &mut publisher.client;
            job.site
                .bind_many(client, CHANNEL, &self.queue, share, &|| job.stops())?;
        }
        Ok(())
    }

    /// Takes turns until there is none left.
    pub fn work(mut self, turns: &Turns) {
        let job = self.job.clone();
        let mut failures = 0;
        while !job.stops() {
            let done = match self.next_turn(turns) {
                Some(done) => done,
                None => break,
            };
            let Err(failure) = done else {
                failures = 0;
                continue;
            };
            job.results.failed(&failure);
            failures += 1;
            if !self.recover(&mut failures) {
                job.gave_up.fetch_add(1, Relaxed);
                break;
            }
        }
        if let Some(publisher) = self.publisher.take() {
            publisher.client.close();
        }
    }

    /// Takes a turn; `None`: there is none any more, or the run is over.
    fn next_turn(&mut self, turns: &Turns) -> Option<Result<(), Failure>> {
        let job = self.job.clone();
        let fills = job.options.fills_queues();
        if fills && self.filled.is_none() {
            if turns.is_over(clock::now()) {
                return None;
            }
            // Ten thousand bindings in a row hold others up as well, and are not to be taken for the deletion's doing.
            sleep_until(clock::now() + CALM_NS, &job)?;
            if let Err(failure) = self.fill_queue(true) {
                return Some(Err(failure));
            }
            sleep_until(clock::now() + CALM_NS, &job)?;
        }
        let free = clock::now();
        let mut due = turns.next(free)?;
        let mut taken = 1;
        while taken < job.options.at_once as usize
            && let Some(later) = turns.next(free)
        {
            due = later;
            taken += 1;
        }
        let woke = sleep_until(due, &job)?;
        let from = begin(due, free, woke, fills);
        Some(match job.options.at_once {
            1 => self.turn(from),
            _ => self.group(taken, job.options.rate.map(|_| from)),
        })
    }

    /// Opens a connection in place of one that failed; false if that failed too often.
    fn recover(&mut self, failures: &mut u32) -> bool {
        while *failures < FAILURES_MOST && !self.job.stops() {
            self.publisher = None;
            self.filled = None;
            thread::park_timeout(PAUSE);
            match self.open() {
                Ok(()) => return true,
                Err(failure) => {
                    self.job.results.failed(&failure);
                    *failures += 1;
                }
            }
        }
        false
    }

    fn turn(&mut self, due: u64) -> Result<(), Failure> {
        match self.job.options.what() {
            What::Bind => self.bind(due),
            What::Queue if self.job.options.fills_queues() => self.delete_filled(due),
            What::Queue => self.declare_and_delete(due),
            What::Connection => self.connect_and_close(due),
            What::Channel => {
                self.timed(0, due, |client| client.open_channel(COMING_AND_GOING))?;
                self.timed(1, clock::now(), |client| client.close_channel(COMING_AND_GOING))
            }
            What::Consumer => {
                let queue = self.queue.clone();
                let none = Table::new();
                let tag = self.timed(0, due, |client| client.consume(CHANNEL, &queue, "", true, &none))?;
                self.timed(1, clock::now(), |client| client.cancel(CHANNEL, &tag))
            }
            What::Acquire => self.acquire(due),
            What::Dispatch => {
                let publisher = self.publisher.as_mut().ok_or_else(gone)?;
                publisher.dispatch(&self.job.site.exchange, &self.keys, self.job.options.size)?;
                self.job.results.record(self.number, 0, since(due));
                Ok(())
            }
        }
    }

    fn bind(&mut self, due: u64) -> Result<(), Failure> {
        let (queue, key) = (self.queue.clone(), self.job.site.key(self.number));
        let job = self.job.clone();
        let exchange = &job.site.exchange;
        self.timed(0, due, |client| {
            client.bind_queue(CHANNEL, &queue, exchange, &key)
        })?;
        self.timed(1, clock::now(), |client| {
            client.unbind_queue(CHANNEL, &queue, exchange, &key)
        })
    }

    fn declare_and_delete(&mut self, due: u64) -> Result<(), Failure> {
        let job = self.job.clone();
        let name = self.fresh_queue();
        self.timed(0, due, |client| {
            job.site.declare_queue(client, CHANNEL, &name, false)
        })?;
        self.timed(1, clock::now(), |client| {
            job.site.delete_queue(client, CHANNEL, &name)
        })
    }

    /// Makes the queue that the next turn deletes; `timed` if that belongs to the run.
    fn fill_queue(&mut self, timed: bool) -> Result<(), Failure> {
        let job = self.job.clone();
        let name = self.fresh_queue();
        let client = self.client()?;
        let before = clock::now();
        job.site.declare_queue(client, CHANNEL, &name, false)?;
        let declared = clock::now();
        job.site
            .bind_many(client, CHANNEL, &name, job.options.preload, &|| job.stops())?;
        if timed && !job.stops() {
            job.results.record(self.number, 0, declared - before);
            job.results.record(self.number, BIND_ALL, since(declared));
        }
        self.filled = Some(name);
        Ok(())
    }

    fn delete_filled(&mut self, due: u64) -> Result<(), Failure> {
        let job = self.job.clone();
        let name = self.filled.take().ok_or_else(gone)?;
        job.deletions.fetch_add(1, Relaxed);
        job.deleting.fetch_add(1, Relaxed);
        let deleted = self.timed(1, due, |client| job.site.delete_queue(client, CHANNEL, &name));
        job.deleting.fetch_sub(1, Relaxed);
        deleted
    }

    fn connect_and_close(&mut self, due: u64) -> Result<(), Failure> {
        let client = self.job.connect("perf-churn")?;
        self.job.results.record(self.number, 0, since(due));
        let before = clock::now();
        client.close();
        self.job.results.record(self.number, 1, since(before));
        Ok(())
    }

    fn acquire(&mut self, due: u64) -> Result<(), Failure> {
        let job = self.job.clone();
        let Some(mut borrowed) = job.pool.acquire(|| job.stops()) else {
            return Ok(());
        };
        job.results.record(self.number, 0, since(due));
        let before = clock::now();
        let dispatched = match &mut borrowed {
            Some(publisher) => publisher.dispatch(&job.site.exchange, &self.keys, job.options.size),
            // A place in the pool whose connection was lost; it is filled again.
            None => Err(gone()),
        };
        match dispatched {
            Ok(()) => {
                job.results.record(self.number, 1, since(before));
                job.pool.release(borrowed);
                Ok(())
            }
            Err(failure) => {
                drop(borrowed);
                let fresh = job
                    .connect("perf-churn-pool")
                    .and_then(|client| Publisher::new(client, true));
                job.pool.release(fresh.ok());
                Err(failure)
            }
        }
    }

    /// Does something on the worker's connection and records how long it took.
    fn timed<T>(
        &mut self,
        operation: usize,
        from: u64,
        act: impl FnOnce(&mut Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let answer = act(self.client()?)?;
        self.job.results.record(self.number, operation, since(from));
        Ok(answer)
    }

    /// The name of a queue that comes and goes.
    pub(super) fn fresh_queue(&mut self) -> String {
        self.queues += 1;
        self.job.site.fresh_queue(self.number, self.queues - 1)
    }

    pub(super) fn client(&mut self) -> Result<&mut Client, Failure> {
        Ok(&mut self.publisher.as_mut().ok_or_else(gone)?.client)
    }
}

pub(super) fn since(before: u64) -> u64 {
    clock::now().saturating_sub(before)
}

fn gone() -> Failure {
    Failure::Lost("the connection is gone, and could not be opened again".into())
}

/// Sleeps until the moment, and says when it woke; `None` if it should stop.
fn sleep_until(due: u64, job: &Job) -> Option<u64> {
    loop {
        let now = clock::now();
        if now >= due {
            return Some(now);
        }
        if job.stops() {
            return None;
        }
        thread::park_timeout(Duration::from_nanos(due - now).min(GLANCE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::scripted::{Offer, Peer, plan};
    use crate::subcommand::Request;
    use protocol::amqp::Method;
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    /// A broker for so many clients, one after the other, that refuses to declare the queue of this name. Gives what each
    /// asked for.
    fn broker(clients: usize, refused: &'static str) -> (String, JoinHandle<Vec<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("amqp://{}", listener.local_addr().unwrap());
        let refuse = move |method: &Method<'_>| match method {
            Method::QueueDeclare(it) if it.queue == refused => Some((403, "ACCESS_REFUSED".to_owned())),
            _ => None,
        };
        let serve = move |_| {
            let mut peer = Peer::new(listener.accept().unwrap().0);
            peer.log_in(&Offer::default());
            peer.serve(refuse)
        };
        (uri, thread::spawn(move || (0..clients).map(serve).collect()))
    }

    /// Lets one worker do what the flags say; gives the job afterwards.
    fn work(uri: &str, flags: &str) -> Arc<Job> {
        let words: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        let Ok(Request::Run(options)) = Options::read(&words) else {
            panic!("{flags}")
        };
        let plan = plan(&format!("--uri {uri} --id x --heartbeat 0"));
        let operations = options.what().operations(options.fills_queues()).len();
        let job = Arc::new(Job {
            site: Site::new(&options, "x", None),
            results: Results::new(operations, 1),
            options: *options,
            plan,
            pool: Pool::default(),
            stop: AtomicBool::new(false),
            deleting: AtomicUsize::new(0),
            deletions: AtomicUsize::new(0),
            gave_up: AtomicUsize::new(0),
        });
        let worker = Worker::prepare(0, job.clone()).unwrap();
        worker.work(&Turns::new(
            job.options.rate,
            clock::now(),
            None,
            job.options.count,
        ));
        job
    }

    fn counts(job: &Job) -> Vec<u64> {
        job.results
            .take()
            .iter()
            .map(hdrhistogram::Histogram::len)
            .collect()
    }

    #[test]
    fn a_turn_declares_a_queue_and_deletes_it() {
        let (uri, broker) = broker(1, "");
        let job = work(&uri, "--what queue --count 2");
        let lines = broker.join().unwrap().concat();
        assert_eq!(
            lines,
            [
                "channel",
                "queue 'perf-churn-x-0-0' durable",
                "delete queue perf-churn-x-0-0",
                "queue 'perf-churn-x-0-1' durable",
                "delete queue perf-churn-x-0-1",
            ]
        );
        assert_eq!((counts(&job), job.site.left()), (vec![2, 2], 0));
    }

    #[test]
    fn a_queue_with_bindings_is_filled_before_its_turn_and_not_after_the_last_one() {
        let (uri, broker) = broker(1, "");
        let job = work(&uri, "--delete-with-bindings 3 --count 2 --keys sequential");
        let lines = broker.join().unwrap().concat();
        let verbs: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
        let queue = ["queue", "bind", "bind", "bind", "delete"];
        assert_eq!(verbs, [&["channel"][..], &queue, &queue].concat());
        // The first filling came before the clock started.
        assert_eq!(counts(&job), [1, 2, 1]);
    }

    #[test]
    fn turns_at_once_are_asked_for_together_and_undone_together() {
        let (uri, broker) = broker(1, "");
        let job = work(&uri, "--what queue --at-once 2 --count 3");
        let lines = broker.join().unwrap().concat();
        let verbs: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(
            verbs,
            ["channel", "queue", "queue", "delete", "delete", "queue", "delete"]
        );
        assert_eq!((counts(&job), job.site.left()), (vec![3, 3], 0));
        let (uri, broker) = self::broker(1, "");
        let job = work(&uri, "--what bind --at-once 3 --count 3");
        let lines = broker.join().unwrap().concat();
        let count = |verb: &str| lines.iter().filter(|line| line.starts_with(verb)).count();
        assert_eq!((count("bind"), count("unbind"), counts(&job)), (3, 3, vec![3, 3]));
    }

    #[test]
    fn turns_at_once_wait_until_the_last_of_them_is_due_if_there_is_a_rate() {
        let (uri, broker) = broker(1, "");
        let began = clock::now();
        let job = work(&uri, "--what bind --at-once 5 --count 5 --rate 25");
        assert!(clock::now() - began >= 160_000_000);
        broker.join().unwrap();
        // They count from then, and not from the moment when the first one was due.
        let taken = job.results.take();
        assert_eq!((taken[0].len(), taken[1].len()), (5, 5));
        assert!(taken[0].max() < 120_000_000, "{}", taken[0].max());
    }

    #[test]
    fn after_an_error_the_worker_goes_on_with_a_new_connection() {
        let (uri, broker) = broker(2, "perf-churn-x-0-1");
        let job = work(&uri, "--what queue --count 3");
        let clients = broker.join().unwrap();
        assert_eq!(
            clients[1][1..],
            [
                "queue 'perf-churn-x-0-2' durable",
                "delete queue perf-churn-x-0-2"
            ]
        );
        assert_eq!(counts(&job), [2, 2]);
        let errors = job.results.errors();
        assert_eq!((errors.count, job.gave_up.load(Relaxed)), (1, 0));
        assert!(errors.first.unwrap().to_string().contains("ACCESS_REFUSED"));
        // It may have been made all the same, so it is deleted at the end.
        assert_eq!(job.site.left(), 1);
    }

    #[test]
    fn channels_and_connections_come_and_go() {
        let (uri, broker) = broker(1, "");
        let job = work(&uri, "--what channel --count 3 --rate 1000");
        assert_eq!((broker.join().unwrap()[0].len(), counts(&job)), (4, vec![3, 3]));
        let (uri, broker) = self::broker(3, "");
        let job = work(&uri, "--what connection --count 3");
        assert_eq!((broker.join().unwrap().len(), counts(&job)), (3, vec![3, 3]));
    }
}
