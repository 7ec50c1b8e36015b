//! Writes the events of all sessions that are open here, a group in each transaction.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use deadpool_postgres::{Object as Client, Pool, Transaction};
use mainstem_event::AgentEvent;
use mainstem_journal::{
    JournalError,
    backend::{Head, begins_run},
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use tokio_postgres::{
    binary_copy::BinaryCopyInWriter,
    types::{ToSql, Type},
};

use crate::{
    error::{Failure, Result},
    node::{LOG_INTERVAL, Shared},
    notices::{CHANNEL, notice},
    pool::get,
    queue::Op,
    record::Entry,
    sql::signed,
};

/// How long a transaction may take before its connection counts as lost.
const LONGEST: Duration = Duration::from_secs(10);

/// How many transactions may take too long before the batch is split.
const ATTEMPTS: usize = 2;

/// How long to wait before a transaction is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// What is written in one transaction.
#[derive(Default)]
struct Batch {
    /// By number, so that all nodes lock rows in the same order.
    parts: BTreeMap<i64, Part>,
    released: Vec<Arc<Entry>>,
}

/// The events of one session.
struct Part {
    entry: Arc<Entry>,
    before: u64,
    head: Head,
    events: Vec<AgentEvent>,
}

impl Batch {
    fn append(&mut self, entry: Arc<Entry>, event: AgentEvent) {
        if entry.progress.failure().is_some() {
            return;
        }
        let part = self.parts.entry(entry.no).or_insert_with(|| {
            let head = entry.head();
            Part { before: head.position.last, head, entry, events: Vec::new() }
        });
        part.head.apply(&event);
        part.events.push(event);
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.released.is_empty()
    }

    /// Splits it into batches of one session each; what is released comes last.
    fn apart(self) -> Vec<Self> {
        let one = |(no, part)| Self { parts: BTreeMap::from([(no, part)]), released: Vec::new() };
        let mut batches: Vec<_> = self.parts.into_iter().map(one).collect();
        batches.push(Self { parts: BTreeMap::new(), released: self.released });
        batches
    }
}

/// Serves the queue until it is over.
pub(crate) async fn run(shared: Arc<Shared>, pool: Pool) {
    while let Some(group) = shared.queue.next().await {
        serve(&shared, &pool, group).await;
    }
}

async fn serve(shared: &Shared, pool: &Pool, group: Vec<Op>) {
    let mut batch = Batch::default();
    let appended = group.iter().filter(|op| matches!(op, Op::Append(..))).count() as u64;
    let (mut barriers, mut close) = (Vec::new(), None);
    for op in group {
        match op {
            Op::Append(entry, _) if shared.is_closed() => entry.fail(&JournalError::Closed.to_string()),
            Op::Append(entry, event) => batch.append(entry, event),
            Op::Release(entry) => batch.released.push(entry),
            Op::Barrier(_, caller) => barriers.push(caller),
            Op::Close(caller) => close = Some(caller),
        }
    }
    let written = write(shared, pool, batch).await;
    shared.counts.done(appended);
    // What the database refuses is told by the records that it refuses.
    let is_written = !written.as_ref().is_err_and(|failure| failure.is_transient);
    barriers.into_iter().for_each(|caller: oneshot::Sender<bool>| _ = caller.send(is_written));
    if let Some(caller) = close {
        shared.close();
        let _ = caller.send(written.map_err(|failure| failure.of_journal("write", shared.place())));
    }
}

/// Writes a batch. If the database refuses it, its sessions are written apart, so that one of them
/// does not fail the others.
async fn write(shared: &Shared, pool: &Pool, batch: Batch) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let begun = Instant::now();
    match commit(shared, pool, &batch).await {
        Ok(kept) => {
            let events = batch.parts.iter().filter(|(no, _)| kept.contains(no));
            let events = events.map(|(_, part)| part.events.len() as u64).sum();
            shared.counts.committed(events, begun.elapsed());
            done(shared, batch, &kept);
        }
        Err(failure) if batch.parts.len() > 1 && !failure.is_transient => {
            let mut written = Ok(());
            for one in batch.apart() {
                written = Box::pin(write(shared, pool, one)).await.and(written);
            }
            return written;
        }
        Err(failure) => {
            let why = match failure.is_transient && shared.lease.is_over() {
                true => shared.lost_lease(),
                false => format!("cannot write {}: {failure}", shared.place()),
            };
            batch.parts.values().for_each(|part| shared.fail(&part.entry, &why));
            batch.released.iter().for_each(|entry| shared.forget(entry));
            return Err(failure);
        }
    }
    Ok(())
}

/// Tells the records of what was committed.
fn done(shared: &Shared, batch: Batch, kept: &HashSet<i64>) {
    for (no, part) in batch.parts {
        if kept.contains(&no) {
            part.entry.commit(&part.head);
        } else {
            shared.fail(&part.entry, "another node has taken it over, or it was deleted");
        }
    }
    batch.released.iter().for_each(|entry| shared.forget(entry));
}

/// Commits a batch; returns the sessions that were still ours. While the database can't be reached,
/// it tries again until the node's lease is over: then others may write these sessions.
async fn commit(shared: &Shared, pool: &Pool, batch: &Batch) -> Result<HashSet<i64>> {
    let (mut late, mut logged) = (0, None::<Instant>);
    loop {
        match attempt(pool, batch, &mut late).await {
            Err(failure) if failure.is_transient && late < ATTEMPTS && !shared.lease.is_over() => {
                // A database that is away for long would fill a log.
                if logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
                    tracing::warn!(error = %failure, place = shared.place(), "can't write events; trying again");
                    logged = Some(Instant::now());
                }
                sleep(PAUSE).await;
            }
            Ok(kept) if logged.is_some() => {
                tracing::info!(place = shared.place(), "events are written again");
                return Ok(kept);
            }
            // It may be too large: its sessions are written apart.
            Err(failure) if late >= ATTEMPTS && batch.parts.len() > 1 => {
                return Err(Failure::permanent(failure.to_string()));
            }
            result => return result,
        }
    }
}

/// Writes a batch in a transaction. A connection that takes too long is given up, and counted.
async fn attempt(pool: &Pool, batch: &Batch, late: &mut usize) -> Result<HashSet<i64>> {
    let mut client = get(pool).await?;
    if let Ok(written) = timeout(LONGEST, transact(&mut client, batch)).await {
        return written;
    }
    *late += 1;
    drop(Client::take(client));
    Err(Failure::transient("the database does not answer"))
}

async fn transact(client: &mut Client, batch: &Batch) -> Result<HashSet<i64>> {
    let change = client.transaction().await?;
    let ours = update_heads(&change, &batch.parts).await?;
    let new = || ours.iter().filter(|(_, is_new)| **is_new).filter_map(|(no, _)| batch.parts.get(no));
    copy(&change, new()).await?;
    insert_runs(&change, new()).await?;
    release(&change, &batch.released).await?;
    let told = notice(new().map(|part| part.entry.no));
    if !told.is_empty() {
        let sql = change.prepare_cached("SELECT pg_notify($1, $2)").await?;
        change.query(&sql, &[&CHANNEL, &told]).await?;
    }
    change.commit().await?;
    Ok(ours.into_keys().collect())
}

/// Sets the heads of the sessions that are still ours, which locks their rows. Returns them, with
/// `false` for those that an earlier attempt has committed although its answer was lost.
async fn update_heads(change: &Transaction<'_>, parts: &BTreeMap<i64, Part>) -> Result<HashMap<i64, bool>> {
    if parts.is_empty() {
        return Ok(HashMap::new());
    }
    let (no, epoch) = (of(parts, |part| part.entry.no), of(parts, |part| part.entry.epoch));
    let (before, last) = (of(parts, |part| signed(part.before)), of(parts, last));
    let at = of(parts, |part| signed(part.head.position.at.as_micros()));
    let run = of(parts, |part| part.head.position.run.as_ref().map(|run| run.as_str().to_owned()));
    let streams = of(parts, |part| signed(part.head.position.streams));
    let runs = of(parts, |part| signed(part.head.runs));
    let created_at = of(parts, |part| signed(part.head.created_at.as_micros()));
    let begun_at = of(parts, |part| signed(part.head.begun_at.as_micros()));
    let begins = of(parts, |part| part.events.iter().any(starts_run));
    let sql = "UPDATE sessions s SET last = u.last, updated_at = u.at, run = u.run, streams = u.streams,
            runs = u.runs, created_at = u.created_at, begun_at = u.begun_at,
            cut = CASE WHEN NOT u.begins THEN s.cut END
        FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::text[], $7::int8[],
            $8::int8[], $9::int8[], $10::int8[], $11::bool[])
            AS u(no, epoch, before, last, at, run, streams, runs, created_at, begun_at, begins)
        WHERE s.no = u.no AND s.epoch = u.epoch AND s.last = u.before RETURNING s.no";
    let values: [&(dyn ToSql + Sync); 11] =
        [&no, &epoch, &before, &last, &at, &run, &streams, &runs, &created_at, &begun_at, &begins];
    let updated = change.query(&change.prepare_cached(sql).await?, &values).await?;
    let mut ours: HashMap<i64, bool> =
        updated.iter().map(|row| Ok((row.try_get(0)?, true))).collect::<Result<_>>()?;
    if ours.len() < parts.len() {
        let sql =
            "SELECT s.no FROM sessions s, unnest($1::int8[], $2::int8[], $3::int8[]) AS u(no, epoch, last)
            WHERE s.no = u.no AND s.epoch = u.epoch AND s.last = u.last FOR SHARE OF s";
        for row in change.query(sql, &[&no, &epoch, &last]).await? {
            ours.entry(row.try_get(0)?).or_insert(false);
        }
    }
    Ok(ours)
}

fn of<T>(parts: &BTreeMap<i64, Part>, value: impl Fn(&Part) -> T) -> Vec<T> {
    parts.values().map(value).collect()
}

fn last(part: &Part) -> i64 {
    signed(part.head.position.last)
}

async fn copy(change: &Transaction<'_>, parts: impl Iterator<Item = &Part>) -> Result<()> {
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return Ok(());
    }
    let sink = change.copy_in("COPY events (session, seq, event) FROM STDIN BINARY").await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT8, Type::INT8, Type::TEXT]));
    for part in parts {
        for event in &part.events {
            writer.as_mut().write(&[&part.entry.no, &signed(event.seq), &event.to_json()]).await?;
        }
    }
    writer.finish().await?;
    Ok(())
}

/// Returns `true` if a run has begun with the event; one that is cancelled in the queue has not.
fn starts_run(event: &AgentEvent) -> bool {
    begins_run(event) && !event.is_queued_run_cancel()
}

async fn insert_runs(change: &Transaction<'_>, parts: impl Iterator<Item = &Part>) -> Result<()> {
    let (mut run, mut session, mut first) = (Vec::new(), Vec::new(), Vec::new());
    for (part, event) in parts.flat_map(|part| part.events.iter().map(move |event| (part, event))) {
        if let Some(id) = event.origin.run_id.as_ref().filter(|_| begins_run(event)) {
            run.push(id.as_str());
            session.push(part.entry.no);
            first.push(signed(event.seq));
        }
    }
    if !run.is_empty() {
        let sql = "INSERT INTO runs SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[])
            ON CONFLICT DO NOTHING";
        change.execute(&change.prepare_cached(sql).await?, &[&run, &session, &first]).await?;
    }
    Ok(())
}

async fn release(change: &Transaction<'_>, released: &[Arc<Entry>]) -> Result<()> {
    if released.is_empty() {
        return Ok(());
    }
    let no: Vec<_> = released.iter().map(|entry| entry.no).collect();
    let epoch: Vec<_> = released.iter().map(|entry| entry.epoch).collect();
    let sql = "UPDATE sessions s SET node = NULL FROM unnest($1::int8[], $2::int8[]) AS u(no, epoch)
        WHERE s.no = u.no AND s.epoch = u.epoch";
    change.execute(&change.prepare_cached(sql).await?, &[&no, &epoch]).await?;
    Ok(())
}
