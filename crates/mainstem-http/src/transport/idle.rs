//! Connections that wait for their next request.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use hyper::{Uri, http::uri::Authority};

use super::direct::Connection;

/// How many connections to one server are kept.
const MOST: usize = 256;

/// How long a connection is kept.
const LONGEST: Duration = Duration::from_secs(90);

/// Connections by their servers. No task watches them: one that its server has closed is dropped
/// when it would be used, or when it has been kept for too long and another comes or goes.
#[derive(Default)]
pub(super) struct Idle(Mutex<HashMap<Authority, Vec<Kept>>>);

struct Kept {
    connection: Connection,
    since: Instant,
}

impl Idle {
    /// Removes and returns the connection to this server that was used last.
    pub(super) fn take(&self, server: &Uri) -> Option<Connection> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = kept.get_mut(server.authority()?)?;
        let latest = connections.pop().filter(Kept::is_fresh);
        if latest.is_none() {
            // The others are older.
            connections.clear();
        }
        latest.map(|kept| kept.connection)
    }

    /// Keeps a connection to this server, unless there are many.
    pub(super) fn put(&self, server: &Uri, connection: Connection) {
        let Some(server) = server.authority() else { return };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, connections| {
            // The oldest are first.
            let stale = connections.partition_point(|kept| !kept.is_fresh());
            connections.drain(..stale);
            !connections.is_empty()
        });
        let connections = kept.entry(server.clone()).or_default();
        if connections.len() < MOST {
            connections.push(Kept { connection, since: Instant::now() });
        }
    }
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.since.elapsed() < LONGEST
    }
}
