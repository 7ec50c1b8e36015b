//! Connections that wait for their next request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use hyper::{Uri, http::uri::Authority};
use tokio_util::task::AbortOnDropHandle;

use super::direct::Connection;

/// How many connections to one server are kept.
const MOST: usize = 1024;

/// How long a connection is kept.
const LONGEST: Duration = Duration::from_secs(90);

/// How often connections that are too old, or that their servers have closed, are dropped.
const PERIOD: Duration = Duration::from_secs(10);

/// Connections by their servers.
#[derive(Default)]
pub(super) struct Idle(Mutex<State>);

#[derive(Default)]
struct State {
    connections: HashMap<Authority, Vec<Kept>>,
    /// The task that drops connections, while there are some.
    sweeper: Option<AbortOnDropHandle<()>>,
}

struct Kept {
    connection: Connection,
    since: Instant,
}

impl Idle {
    /// Removes and returns the connection to this server that was used last.
    pub(super) fn take(&self, server: &Uri) -> Option<Connection> {
        let mut state = self.lock();
        let connections = state.connections.get_mut(server.authority()?)?;
        let latest = connections.pop().filter(Kept::is_fresh);
        if latest.is_none() {
            // The others are older.
            connections.clear();
        }
        latest.map(|kept| kept.connection)
    }

    /// Keeps a connection to this server, unless there are many.
    pub(super) fn put(self: &Arc<Self>, server: &Uri, connection: Connection) {
        let Some(server) = server.authority() else { return };
        let mut state = self.lock();
        let connections = state.connections.entry(server.clone()).or_default();
        if connections.len() < MOST {
            connections.push(Kept { connection, since: Instant::now() });
        }
        if state.sweeper.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
            state.sweeper = sweeper(Arc::downgrade(self));
        }
    }

    /// Drops the connections that are too old or closed; returns `true` if any is left.
    fn sweep(&self) -> bool {
        let mut state = self.lock();
        state.connections.retain(|_, connections| {
            connections.retain_mut(|kept| kept.is_fresh() && !kept.connection.is_closed());
            !connections.is_empty()
        });
        if state.connections.is_empty() {
            state.sweeper = None;
        }
        !state.connections.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.since.elapsed() < LONGEST
    }
}

/// Starts the task that drops connections in time, although no request comes; it ends with the last
/// of them, or with their owner. `None` outside of a runtime: the next connection starts it.
fn sweeper(idle: Weak<Idle>) -> Option<AbortOnDropHandle<()>> {
    let sweep = async move {
        while let Some(idle) = {
            tokio::time::sleep(PERIOD).await;
            idle.upgrade()
        } {
            if !idle.sweep() {
                break;
            }
        }
    };
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    Some(AbortOnDropHandle::new(runtime.spawn(sweep)))
}
