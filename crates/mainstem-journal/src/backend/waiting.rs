//! The requests that wait for a writer, and when a group of them is due.

use super::{Request, TenantQueues};

/// Requests that wait for the writer of a journal. A group is due as soon as one of them is
/// [urgent](Request::is_urgent), or there are enough for a transaction; the writer decides how long
/// it waits otherwise.
#[derive(Debug)]
pub struct Waiting<R> {
    requests: TenantQueues<R>,
    /// The maximum number of requests in a group.
    most: usize,
    /// Whether the last group was cut: the requests after it have waited already.
    is_cut: bool,
    is_over: bool,
}

impl<R: Request> Waiting<R> {
    /// Creates an empty list, of which at most so many requests make a group.
    pub fn new(most: usize) -> Self {
        Self { requests: TenantQueues::default(), most, is_cut: false, is_over: false }
    }

    /// Adds a request. Returns `true` if the writer has to be woken.
    pub fn push(&mut self, request: R) -> bool {
        let (was_empty, was_due) = (self.is_empty(), self.is_due());
        self.requests.push(request);
        was_empty || (self.is_due() && !was_due)
    }

    /// Ends the list: no request follows.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Returns `true` after [`end`](Self::end).
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Returns `true` if no request waits.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns `true` if a group is due now.
    pub fn is_due(&self) -> bool {
        self.is_over || self.is_cut || self.requests.has_urgent() || self.requests.len() >= self.most
    }

    /// Returns `true` if one of the requests is [durable](Request::is_durable).
    pub fn has_durable(&self) -> bool {
        self.requests.has_durable()
    }

    /// Removes and returns the next request, as [`TenantQueues::pop`] does. What is left then has
    /// waited already, so it is due.
    pub fn pop(&mut self, is_taken: impl FnOnce(&R) -> bool) -> Option<R> {
        let request = self.requests.pop(is_taken);
        self.is_cut = request.is_some() && !self.requests.is_empty();
        request
    }
}
