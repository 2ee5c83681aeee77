//! Starting and stopping the HTTP API.

use crate::admin_socket;
use crate::call::Api;
use crate::event_tail::EventTail;
use crate::events;
use crate::guesses::Guesses;
use crate::options::Options;
use crate::sampler::Sampler;
use crate::serve::{Listeners, serve};
use crate::served::{self, Served};
use crate::{answering, rebalancing, trace, web_ui};
use broker::Broker;
use listener::{Endpoint, StartError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How many requests are worked on at a time; others wait. It bounds the processors and the memory that the API takes.
const REQUESTS: usize = 4;

const CONTENT_SECURITY_POLICY: &str = "content-security-policy";

/// How long requests may go on after the stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The HTTP API and the pages of the web UI.
pub struct Management {
    endpoints: Vec<Arc<Endpoint>>,
    api: Arc<Api>,
    served: Served,
}

impl Management {
    /// Listens and serves the clients that connect.
    ///
    /// # Errors
    /// An address or the admin socket cannot be listened on, or a thread cannot be started.
    pub fn start(broker: Arc<Broker>, mut options: Options) -> Result<Self, StartError> {
        let runtime = served::runtime("http", REQUESTS)?;
        let (http, admin) = {
            let _inside = runtime.enter();
            // First, so that a client that finds the port open finds the socket too.
            let admin = options.admin_socket.as_deref().map(admin_socket::listen);
            let admin = admin.transpose()?;
            (served::open(&options.endpoints)?, admin)
        };
        let endpoints: Vec<_> = http.iter().map(|it| it.endpoint().clone()).collect();
        options.listeners.extend(endpoints.iter().cloned());
        let own_policy = options
            .headers
            .iter()
            .any(|(name, _)| *name == CONTENT_SECURITY_POLICY);
        if !options.sign_on.resource_servers.is_empty() && !own_policy {
            let policy = web_ui::policy_with(&options.sign_on.origins());
            options.headers.push((CONTENT_SECURITY_POLICY, policy));
        }
        let sampler = Sampler::start(&broker).map_err(StartError::Thread)?;
        let api = Arc::new(Api {
            broker,
            options,
            sampler,
            listeners: Arc::new(Semaphore::new(events::LISTENERS)),
            tracers: Arc::new(Semaphore::new(trace::LISTENERS)),
            guesses: Guesses::default(),
            unread: Arc::default(),
            rebalancing: Arc::default(),
            event_tail: EventTail::default(),
        });
        if api.options.spreads_after_return {
            rebalancing::watch(&api).map_err(StartError::Thread)?;
        }
        let serving = Arc::clone(&api);
        let served = Served::start("http", runtime, STOP_TIMEOUT, |stopped| {
            serve(Listeners { http, admin }, serving, stopped)
        })?;
        Ok(Self {
            endpoints,
            api,
            served,
        })
    }

    /// Where it listens.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }

    /// What answers questions of other nodes of the cluster. It takes its time, and asks nobody.
    pub fn answerer(&self) -> impl Fn(&[u8]) -> Vec<u8> + Send + Sync + use<> {
        let api = Arc::clone(&self.api);
        move |question| answering::answer(&api, question)
    }

    /// Ends all threads. May be called twice.
    pub fn stop(&self) {
        self.served.stop();
    }
}

impl std::fmt::Debug for Management {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HTTP API on {:?}", self.endpoints)
    }
}
