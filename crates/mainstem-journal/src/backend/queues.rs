//! The order in which requests are served: those of a tenant in the order of their arrival, the
//! tenants in turn.

use std::collections::VecDeque;

use mainstem_message::SessionId;

/// A request to the writer of a journal.
pub trait Request {
    /// Returns the session of the request; `None` if it is about all sessions.
    fn session(&self) -> Option<&SessionId>;

    /// Returns `true` if a caller or, for a release, another process waits for it.
    fn is_urgent(&self) -> bool;

    /// Returns `true` if it must be on the disk before it is acknowledged.
    fn is_durable(&self) -> bool;
}

/// Queued requests. A tenant with many or large ones delays another tenant's by one of its own.
#[derive(Debug)]
pub struct TenantQueues<R> {
    /// The number of the next request.
    next: u64,
    /// The tenants that have requests; the first is served next.
    tenants: VecDeque<TenantQueue<R>>,
    /// Requests about all sessions. Each is served after every earlier request of every tenant.
    barriers: VecDeque<Numbered<R>>,
    len: usize,
    durable: usize,
    urgent: usize,
}

/// The requests of a tenant.
#[derive(Debug)]
struct TenantQueue<R> {
    tenant: Box<str>,
    requests: VecDeque<Numbered<R>>,
}

#[derive(Debug)]
struct Numbered<R> {
    number: u64,
    request: R,
}

impl<R> Default for TenantQueues<R> {
    fn default() -> Self {
        let (tenants, barriers) = (VecDeque::new(), VecDeque::new());
        Self { next: 0, tenants, barriers, len: 0, durable: 0, urgent: 0 }
    }
}

impl<R: Request> TenantQueues<R> {
    /// Returns the number of requests.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the queue has no requests.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns `true` if one of them is [durable](Request::is_durable).
    pub fn has_durable(&self) -> bool {
        self.durable > 0
    }

    /// Returns `true` if one of them is [urgent](Request::is_urgent).
    pub fn has_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// Adds a request behind the others of its tenant.
    pub fn push(&mut self, request: R) {
        let number = self.next;
        self.next += 1;
        self.len += 1;
        self.durable += usize::from(request.is_durable());
        self.urgent += usize::from(request.is_urgent());
        let line = match request.session() {
            None => &mut self.barriers,
            Some(session) => {
                // The prefix that `Scoped` gives sessions.
                let tenant = session.tenant().unwrap_or_default();
                let place = self.tenants.iter().position(|line| *line.tenant == *tenant);
                let place = place.unwrap_or_else(|| {
                    self.tenants.push_back(TenantQueue { tenant: tenant.into(), requests: VecDeque::new() });
                    self.tenants.len() - 1
                });
                &mut self.tenants[place].requests
            }
        };
        line.push_back(Numbered { number, request });
    }

    /// Removes and returns the next request. Returns `None` if the queue is empty or `is_taken`
    /// returns `false` for the next request.
    pub fn pop(&mut self, is_taken: impl FnOnce(&R) -> bool) -> Option<R> {
        let is_barrier = self.is_barrier_next();
        let next = match is_barrier {
            true => self.barriers.front(),
            false => self.tenants.front().and_then(|line| line.requests.front()),
        };
        next.filter(|next| is_taken(&next.request))?;
        let request = match is_barrier {
            true => self.barriers.pop_front()?.request,
            false => self.pop_in_turn()?,
        };
        self.len -= 1;
        self.durable -= usize::from(request.is_durable());
        self.urgent -= usize::from(request.is_urgent());
        Some(request)
    }

    fn is_barrier_next(&self) -> bool {
        let mut first = self.tenants.iter().filter_map(|line| line.requests.front());
        self.barriers.front().is_some_and(|barrier| first.all(|first| first.number > barrier.number))
    }

    fn pop_in_turn(&mut self) -> Option<R> {
        let mut line = self.tenants.pop_front()?;
        let next = line.requests.pop_front();
        if !line.requests.is_empty() {
            self.tenants.push_back(line);
        }
        next.map(|next| next.request)
    }
}

#[cfg(test)]
mod tests;
