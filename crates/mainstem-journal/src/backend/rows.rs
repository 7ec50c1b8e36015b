//! Turns rows into events, damaged ones included.

use std::ops::RangeInclusive;

use mainstem_event::{AgentEvent, Page, Timestamp};
use mainstem_message::{SessionId, TenantName};

use crate::JournalError;

/// The maximum number of characters of a reason, which may quote the event.
const REASON: usize = 200;

/// An event as a database has it.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row has these two fields")]
pub struct Row {
    /// The event's number.
    pub seq: u64,
    /// The event as JSON, unless it is damaged.
    pub event: Vec<u8>,
}

/// Rows of a session, and the range of numbers that they should have.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a page of rows has these three fields")]
pub struct Found {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// The numbers that they should have.
    pub wanted: RangeInclusive<u64>,
    /// The last number that the session should have.
    pub last: u64,
}

fn parse(row: &Row) -> Result<AgentEvent, String> {
    let why = |error: serde_json::Error| error.to_string().chars().take(REASON).collect::<String>();
    let event: AgentEvent = serde_json::from_slice(&row.event).map_err(why)?;
    if event.seq == row.seq { Ok(event) } else { Err(format!("it says that it is event {}", event.seq)) }
}

impl Found {
    /// Returns the events before the first that is damaged or missing.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] if that is the first of all.
    pub fn intact(&self, session: &SessionId) -> Result<Vec<AgentEvent>, JournalError> {
        let mut events = Vec::with_capacity(self.rows.len());
        let mut rows = self.rows.iter();
        for seq in self.wanted.clone() {
            let event = match rows.next() {
                Some(row) if row.seq == seq => parse(row).map_err(|why| (seq, why)),
                // The database itself skips rows that it can't read.
                Some(row) => Err((row.seq.saturating_sub(1).max(seq), "it is missing".to_owned())),
                None => Err((self.last.max(seq), "it is missing".to_owned())),
            };
            match event {
                Ok(event) => events.push(event),
                Err((through, why)) if events.is_empty() => {
                    return Err(JournalError::Damaged { session: session.clone(), seq, through, why });
                }
                Err(_) => break,
            }
        }
        Ok(events)
    }
}

impl Row {
    /// Returns the events of rows up to a number, with a gap and its reason in place of each
    /// damaged one. If there are as many rows as a page has, later ones may exist.
    pub fn page(session: &SessionId, rows: &[Self], through: u64, full: usize) -> Page {
        let last = rows.last().filter(|_| rows.len() == full);
        let through = last.map_or(through, |row| row.seq);
        let known = rows.iter().find_map(|row| parse(row).ok());
        let mut at = known.map_or_else(Timestamp::default, |event| event.at);
        let event = |row: &Self| {
            let event = parse(row)
                .unwrap_or_else(|why| AgentEvent::unreadable(session.clone(), row.seq..=row.seq, at, why));
            at = event.at;
            event
        };
        Page { events: rows.iter().map(event).collect(), through }
    }
}

/// Returns an id for a session whose name in the database is not one, in the same tenant's part.
pub fn nearest_id(name: &str) -> SessionId {
    let mut parts = name.rsplit('/');
    let id = SessionId::from_lossy(parts.next().unwrap_or_default());
    parts.fold(id, |id, tenant| id.scoped(&TenantName::from_lossy(tenant)))
}
