//! What the models of a runtime share: the HTTP stack with its connections.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use mainstem_outbound::client;
use reqwest::Client;
use tokio::runtime::{Handle, Id};

use super::direct::Direct;

/// How many calls at once share a client of reqwest, and so a connection of HTTP/2. Vendors allow
/// about as many streams on one; more would wait for a stream to end.
const CALLS: usize = 100;

/// The stacks that runtimes share.
static SHARED: Mutex<Vec<(Id, Weak<Stack>)>> = Mutex::new(Vec::new());

/// The ways to a server.
pub(super) struct Stack {
    pub(super) direct: Direct,
    /// Each has connections of its own. A call holds the one that it uses.
    clients: Mutex<Vec<Arc<Client>>>,
}

impl Stack {
    /// Returns the stack that all callers of this tokio runtime share. It ends with the last of its
    /// holders.
    ///
    /// Each runtime has its own, because a runtime drives the sockets that it has opened: a request
    /// through a runtime that does not run gets no answer. Outside of a runtime, every call creates
    /// a stack.
    pub(super) fn of_runtime() -> Arc<Self> {
        let Ok(runtime) = Handle::try_current() else { return Arc::new(Self::new()) };
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shared.iter().find(|(id, _)| *id == runtime.id());
        if let Some(stack) = known.and_then(|(_, stack)| stack.upgrade()) {
            return stack;
        }
        let stack = Arc::new(Self::new());
        shared.retain(|(_, stack)| stack.strong_count() > 0);
        shared.push((runtime.id(), Arc::downgrade(&stack)));
        stack
    }

    fn new() -> Self {
        Self { direct: Direct::new(), clients: Mutex::default() }
    }

    /// Returns a client of reqwest for one call, which holds it to its end, for all that [`Direct`]
    /// can't reach.
    ///
    /// # Errors
    /// If TLS is not available.
    pub(super) fn client(&self) -> reqwest::Result<Arc<Client>> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = |client: &&Arc<Client>| Arc::strong_count(client) <= CALLS;
        if let Some(client) = clients.iter().find(has_room) {
            return Ok(client.clone());
        }
        let client = Arc::new(client()?);
        clients.push(client.clone());
        Ok(client)
    }
}

#[cfg(test)]
mod tests;
