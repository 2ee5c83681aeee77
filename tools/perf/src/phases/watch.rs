//! Looks whether a phase is over, and tells how deep the queues are.

use super::gauge::Gauge;
use super::script::Depth;
use crate::churn::screen::Screen;
use crate::engine::Load;
use crate::plan::Plan;
use std::time::{Duration, Instant};

/// What was delivered and is not counted yet has this long to come.
const UNDER_WAY: Duration = Duration::from_secs(2);

/// See the module.
pub struct Watch {
    pub gauge: Gauge,
    wanted: Option<Depth>,
    /// The depth that was asked for is reached.
    pub met: bool,
    pub screen: Screen,
    /// What the line of a reading begins with.
    beginning: String,
    started: Instant,
    told: Instant,
    /// Messages that a fill publishes, or that go until the depth is reached.
    way: Option<u64>,
    time: Option<Duration>,
    fills: bool,
    /// Nobody publishes.
    drains: bool,
    met_since: Option<Instant>,
}

impl Watch {
    /// `fill`: messages that the phase publishes, if that is its end; `wanted`: the depth that is; `start`: the depth now.
    pub fn new(
        name: &str,
        fill: Option<u64>,
        plan: &Plan,
        wanted: Option<Depth>,
        start: u64,
        mut screen: Screen,
    ) -> Self {
        let fills = fill.is_some();
        let way = fill.or(wanted.map(|depth| depth.messages().abs_diff(start)));
        let time = plan.stopping.time;
        let whole = way.or_else(|| time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)));
        if let Some(whole) = whole {
            screen.bar(whole, name);
        }
        let now = Instant::now();
        Self {
            gauge: Gauge::new(now, wanted, start),
            wanted,
            met: false,
            screen,
            beginning: format!("id: {}, phase {name}", plan.id),
            started: now,
            told: now,
            way,
            time,
            fills,
            drains: plan.producing.producers == 0,
            met_since: None,
        }
    }

    /// A reason when the phase is over.
    pub fn look(&mut self, load: &mut Load) -> Option<String> {
        let now = Instant::now();
        let totals = load.totals();
        self.show(now, totals);
        if !self.gauge.asks(now, totals) {
            return None;
        }
        let Ok(depth) = load.ready_messages() else {
            self.gauge.unanswered(now);
            return None;
        };
        self.met = self.gauge.answered(now, totals, depth) && !self.is_under_way(now, totals);
        if self.met || now.duration_since(self.told) >= Duration::from_secs(1) {
            self.told = now;
            let seconds = now.duration_since(self.started).as_secs_f64();
            self.screen.line(&format!(
                "{}, time {seconds:.3} s, depth: {depth} messages",
                self.beginning
            ));
        }
        let wanted = self.wanted.filter(|_| self.met)?;
        Some(format!("Reached depth {}", wanted.messages()))
    }

    /// Whether messages that are delivered and not counted yet are awaited: where nobody publishes they belong to the drain.
    /// Messages that others took never come, so this has an end.
    fn is_under_way(&mut self, now: Instant, (_, consumed): (u64, u64)) -> bool {
        let Some(Depth::AtMost(wanted)) = self.wanted.filter(|_| self.drains) else {
            return false;
        };
        let since = *self.met_since.get_or_insert(now);
        self.gauge.start.saturating_sub(consumed) > wanted && now.duration_since(since) < UNDER_WAY
    }

    fn show(&self, now: Instant, totals: (u64, u64)) {
        let elapsed = now.duration_since(self.started);
        let depth = self.gauge.estimate(totals);
        let done = match self.way {
            Some(way) if self.fills => totals.0.min(way),
            Some(way) => self.gauge.start.abs_diff(depth).min(way),
            None if self.time.is_some() => u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            None => return,
        };
        self.screen.advance(done, elapsed, &format!("depth {depth}"));
    }
}
