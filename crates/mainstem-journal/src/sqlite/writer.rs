//! The thread that writes. Requests that arrive while it writes share the next transaction.

use std::{
    collections::HashMap,
    iter::from_fn,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::{
    op::Op,
    queue::{GROUP, Queue},
    transaction::{Changes, Sessions, Transaction, release},
};
use crate::{JournalError, backend::Request, sync::has_passed};

/// How long requests are added to a transaction: those of other tenants wait for its end.
const LONGEST: Duration = Duration::from_millis(4);

/// The number of attempts to commit while another process writes; each waits for some seconds.
const ATTEMPTS: usize = 6;

pub(super) struct Writer {
    connection: Connection,
    path: PathBuf,
    open: Sessions,
    is_closed: bool,
    /// Whether the file is only read, so that no transaction can begin.
    only_reads: bool,
}

impl Writer {
    pub(super) fn new(connection: Connection, path: PathBuf) -> Self {
        let only_reads = connection.is_readonly("main").unwrap_or(false);
        Self { connection, path, open: Sessions::new(), is_closed: false, only_reads }
    }

    pub(super) fn run(mut self, queue: &Arc<Queue>) {
        while let Some(is_durable) = queue.due() {
            self.read(queue);
            if queue.is_empty() {
                continue;
            }
            if self.is_closed {
                self.write_all(from_fn(|| queue.pop(true)).collect(), queue);
            } else {
                self.write(Vec::new(), is_durable, queue, || queue.pop(is_durable));
            }
        }
    }

    /// Answers the requests at the front of the queue that only read. They need not wait for
    /// another process that writes.
    fn read(&mut self, queue: &Arc<Queue>) {
        let only_reads = self.only_reads;
        let needs_no_transaction = |op: &Op| op.is_read() || only_reads && op.is_end();
        while let Some(mut op) = queue.pop_if(needs_no_transaction) {
            match Transaction::new(&self.connection, &self.path, &self.open).apply(&mut op) {
                Ok(()) => self.answer(op, queue),
                Err(error) => op.fail(&JournalError::store("read", &*self.path)(error)),
            }
        }
    }

    /// Writes these requests alone.
    fn write_all(&mut self, ops: Vec<Op>, queue: &Arc<Queue>) {
        let ops = if self.is_closed { refuse(ops) } else { ops };
        if !ops.is_empty() {
            let is_durable = ops.iter().any(Op::is_durable);
            self.write(ops, is_durable, queue, || None);
        }
    }

    /// Writes these requests and those of `more` in one transaction. If the transaction fails, its
    /// parts are written apart.
    fn write(
        &mut self,
        mut ops: Vec<Op>,
        is_durable: bool,
        queue: &Arc<Queue>,
        mut more: impl FnMut() -> Option<Op>,
    ) {
        let written = self.change(is_durable, |transaction| {
            ops.iter_mut().try_for_each(|op| transaction.apply(op))?;
            let begun = Instant::now();
            while has_room(&ops, begun)
                && let Some(mut op) = more()
            {
                // Added to the others even if it fails: each of them is answered.
                let applied = transaction.apply(&mut op);
                ops.push(op);
                applied?;
            }
            Ok(())
        });
        match written {
            Ok((changes, ())) => {
                changes.commit(&self.path, &mut self.open);
                ops.into_iter().for_each(|op| self.answer(op, queue));
            }
            // The transaction could not begin. Retrying each request would wait for the lock again
            // each time.
            Err(error) if ops.is_empty() => from_fn(more).take(GROUP).for_each(|op| self.fail(op, &error)),
            Err(error) => match pieces(ops) {
                pieces if pieces.len() > 1 => self.write_apart(pieces, is_durable, queue),
                pieces => pieces.into_iter().flatten().for_each(|op| self.fail(op, &error)),
            },
        }
    }

    /// Writes the parts of a transaction that has failed. One that fails again is undone alone, so
    /// that the others share one sync.
    fn write_apart(&mut self, mut pieces: Vec<Vec<Op>>, is_durable: bool, queue: &Arc<Queue>) {
        let written = self.change(is_durable, |transaction| {
            pieces.iter_mut().map(|ops| transaction.apply_apart(ops)).collect::<rusqlite::Result<Vec<_>>>()
        });
        let Ok((changes, results)) = written else {
            // The transaction itself has failed: each part has one of its own.
            return pieces.into_iter().for_each(|ops| self.write_all(ops, queue));
        };
        changes.commit(&self.path, &mut self.open);
        for (ops, result) in pieces.into_iter().zip(results) {
            match result.map_err(JournalError::store("write", &*self.path)) {
                Ok(()) => ops.into_iter().for_each(|op| self.answer(op, queue)),
                Err(error) => ops.into_iter().for_each(|op| self.fail(op, &error)),
            }
        }
    }

    /// Fails a request. A release and a close take effect nevertheless: they need no transaction.
    fn fail(&mut self, op: Op, error: &JournalError) {
        match &op {
            Op::Release(entry) => release(&mut self.open, entry),
            Op::Close(_) => self.is_closed = true,
            _ => {}
        }
        op.fail(error);
    }

    /// Runs a transaction, and retries it while another process writes. If `is_durable` is set, the
    /// transaction is on the disk when this returns.
    fn change<T>(
        &mut self,
        is_durable: bool,
        mut apply: impl FnMut(&mut Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<(Changes, T), JournalError> {
        let Self { connection, path, open, .. } = self;
        let mut attempt = || {
            connection.pragma_update(None, "synchronous", if is_durable { "FULL" } else { "NORMAL" })?;
            let sql = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut transaction = Transaction::new(&sql, path, open);
            let applied = apply(&mut transaction)?;
            let changes = transaction.finish()?;
            sql.commit()?;
            Ok::<_, rusqlite::Error>((changes, applied))
        };
        let mut result = attempt();
        for _ in 1..ATTEMPTS {
            match &result {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                    result = attempt()
                }
                _ => break,
            }
        }
        result.map_err(JournalError::store("write", &*path))
    }

    /// Sends the result to the caller.
    fn answer(&mut self, mut op: Op, queue: &Arc<Queue>) {
        // This thread itself may have dropped the last reference to the log while it woke it; the
        // release is in the queue then.
        if op.ask_again() {
            return queue.push(op);
        }
        match op {
            Op::Append(..) | Op::Release(_) => {}
            Op::Open(_, answer) => answer.send_opened(queue),
            Op::IsOpen(_, answer) | Op::Delete(_, answer) => answer.send(),
            Op::Claim(_, answer) => answer.send(),
            Op::StoreData(_, answer) => answer.send(),
            Op::Prune(_, _, answer) => answer.send(),
            Op::Checkpoint(_, _, answer) | Op::Flush(answer) => answer.send(),
            Op::Close(answer) => {
                self.is_closed = true;
                // After this the file alone has everything, unless another process has it open.
                let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
                answer.send();
            }
        }
    }
}

/// Returns `true` if a transaction takes another request. After a close it takes none, because
/// later requests are refused.
fn has_room(ops: &[Op], begun: Instant) -> bool {
    let is_closing = matches!(ops.last(), Some(Op::Close(_)));
    ops.len() < GROUP && !is_closing && !has_passed(LONGEST, begun)
}

/// Fails the requests that a closed journal refuses, and returns the rest.
fn refuse(ops: Vec<Op>) -> Vec<Op> {
    let is_allowed = |op: &Op| {
        !matches!(op, Op::Append(..) | Op::Open(..) | Op::Claim(..) | Op::StoreData(..) | Op::Checkpoint(..))
    };
    let (allowed, refused): (Vec<_>, Vec<_>) = ops.into_iter().partition(is_allowed);
    refused.into_iter().for_each(|op| op.fail(&JournalError::Closed));
    allowed
}

/// Splits requests into parts that can fail alone: the events of a session, and each other request,
/// in an order that respects their dependencies.
fn pieces(ops: Vec<Op>) -> Vec<Vec<Op>> {
    let mut pieces: Vec<Vec<Op>> = Vec::new();
    let mut of_session: HashMap<i64, usize> = HashMap::new();
    for op in ops {
        if let Op::Append(entry, _) = &op {
            let piece = *of_session.entry(entry.row).or_insert(pieces.len());
            pieces.resize_with(pieces.len().max(piece + 1), Vec::new);
            pieces[piece].push(op);
        } else {
            of_session.clear();
            pieces.push(vec![op]);
        }
    }
    pieces
}

#[cfg(all(test, not(shuttle)))]
mod tests;
