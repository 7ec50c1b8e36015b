//! The order in which requests are served: those of a tenant in the order of their arrival, the
//! tenants in turn.

use std::collections::VecDeque;

use super::op::Op;

/// Queued requests. A tenant with many or large ones delays another tenant's by one of its own.
#[derive(Default)]
pub(super) struct TenantQueues {
    /// The number of the next request.
    next: u64,
    /// The tenants that have requests; the first is served next.
    tenants: VecDeque<TenantQueue>,
    /// Requests about all sessions. Each is served after every earlier request of every tenant.
    barriers: VecDeque<Numbered>,
    len: usize,
    durable: usize,
    urgent: usize,
}

/// The requests of a tenant.
struct TenantQueue {
    tenant: Box<str>,
    ops: VecDeque<Numbered>,
}

struct Numbered {
    number: u64,
    op: Op,
}

impl TenantQueues {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if one of them is [durable](Op::is_durable).
    pub(super) fn has_durable(&self) -> bool {
        self.durable > 0
    }

    /// Returns `true` if one of them is [urgent](Op::is_urgent).
    pub(super) fn has_urgent(&self) -> bool {
        self.urgent > 0
    }

    pub(super) fn push(&mut self, op: Op) {
        let number = self.next;
        self.next += 1;
        self.len += 1;
        self.durable += usize::from(op.is_durable());
        self.urgent += usize::from(op.is_urgent());
        let line = match op.session() {
            None => &mut self.barriers,
            Some(session) => {
                // The prefix that `Scoped` gives sessions.
                let tenant = session.tenant().unwrap_or_default();
                let place = self.tenants.iter().position(|line| *line.tenant == *tenant);
                let place = place.unwrap_or_else(|| {
                    self.tenants.push_back(TenantQueue { tenant: tenant.into(), ops: VecDeque::new() });
                    self.tenants.len() - 1
                });
                &mut self.tenants[place].ops
            }
        };
        line.push_back(Numbered { number, op });
    }

    /// Removes and returns the next request. Returns `None` if the queue is empty or `is_taken`
    /// returns `false` for the next request.
    pub(super) fn pop(&mut self, is_taken: impl FnOnce(&Op) -> bool) -> Option<Op> {
        let is_barrier = self.is_barrier_next();
        let next = match is_barrier {
            true => self.barriers.front(),
            false => self.tenants.front().and_then(|line| line.ops.front()),
        };
        next.filter(|next| is_taken(&next.op))?;
        let op = match is_barrier {
            true => self.barriers.pop_front()?.op,
            false => self.pop_in_turn()?,
        };
        self.len -= 1;
        self.durable -= usize::from(op.is_durable());
        self.urgent -= usize::from(op.is_urgent());
        Some(op)
    }

    fn is_barrier_next(&self) -> bool {
        let mut first = self.tenants.iter().filter_map(|line| line.ops.front());
        self.barriers.front().is_some_and(|barrier| first.all(|first| first.number > barrier.number))
    }

    fn pop_in_turn(&mut self) -> Option<Op> {
        let mut line = self.tenants.pop_front()?;
        let next = line.ops.pop_front();
        if !line.ops.is_empty() {
            self.tenants.push_back(line);
        }
        next.map(|next| next.op)
    }
}

#[cfg(test)]
mod tests;
