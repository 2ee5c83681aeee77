//! Metrics that others collect: a page for Prometheus and posts to Datadog, named as PerfTest names them.
//!
//! A [`Board`] keeps what the last interval was like and lists it as [`Meter`]s; `prometheus` and `datadog` carry them out,
//! each on a thread of its own. No failure of theirs ends a run.

mod arguments;
mod board;
mod datadog;
mod expected;
mod meter;
mod process;
mod prometheus;

pub use board::Board;
pub use meter::{Kind, Meter, Summary};

use crate::failure::Failure;
use crate::measure::Sample;
use crate::plan::Plan;
use datadog::Poster;
use prometheus::Page;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The board where the run writes and the carriers read.
type Shared = Arc<Mutex<Board>>;

/// The carriers that a run asked for.
pub struct Exporter {
    board: Shared,
    page: Option<Page>,
    poster: Option<Poster>,
}

impl Exporter {
    /// Starts what the plan asks for; `None` if that is nothing. Fails if the page's port is not free.
    pub fn start(plan: &Plan) -> Result<Option<Self>, Failure> {
        let exporting = &plan.exporter;
        if exporting.prometheus.is_none() && exporting.datadog.is_none() {
            return Ok(None);
        }
        let board: Shared = Arc::new(Mutex::new(Board::new(plan)));
        let page = match &exporting.prometheus {
            Some((port, path)) => Some(Page::start(*port, path, board.clone())?),
            None => None,
        };
        let poster = match &exporting.datadog {
            Some(datadog) => Some(Poster::start(datadog.clone(), board.clone())?),
            None => None,
        };
        Ok(Some(Self { board, page, poster }))
    }

    /// Shows an interval from now on.
    pub fn update(&self, sample: &Sample) {
        self.board
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .update(sample);
    }

    /// Where the page is served.
    pub fn address(&self) -> Option<SocketAddr> {
        self.page.as_ref().map(Page::address)
    }

    /// Ends the carriers; Datadog gets what it has not got yet.
    pub fn stop(self) {
        if let Some(page) = self.page {
            page.stop();
        }
        if let Some(poster) = self.poster {
            poster.stop();
        }
    }
}
