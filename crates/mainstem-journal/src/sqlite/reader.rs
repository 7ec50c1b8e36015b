//! Turns rows into events, on the thread that reads.

use mainstem_event::{AgentEvent, Page, Timestamp};
use mainstem_message::SessionId;

use super::{
    PAGE,
    table::{Found, Row},
};
use crate::JournalError;

/// The maximum number of characters of a reason, which may quote the event.
const REASON: usize = 200;

fn parse(row: &Row) -> Result<AgentEvent, String> {
    let why = |error: serde_json::Error| error.to_string().chars().take(REASON).collect::<String>();
    let event: AgentEvent = serde_json::from_slice(&row.event).map_err(why)?;
    if event.seq == row.seq { Ok(event) } else { Err(format!("it says that it is event {}", event.seq)) }
}

/// Returns the events before the first that is damaged or missing, or an error if that is the first
/// of all.
pub(super) fn intact(session: &SessionId, found: &Found) -> Result<Vec<AgentEvent>, JournalError> {
    let mut events = Vec::with_capacity(found.rows.len());
    let mut rows = found.rows.iter();
    for seq in found.wanted.clone() {
        let event = match rows.next() {
            Some(row) if row.seq == seq => parse(row).map_err(|why| (seq, why)),
            // The database itself skips rows that it can't read.
            Some(row) => Err((row.seq.saturating_sub(1).max(seq), "it is missing".to_owned())),
            None => Err((found.last.max(seq), "it is missing".to_owned())),
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

/// Returns the events of rows up to a number, with a gap and its reason in place of each damaged
/// one.
pub(super) fn page_with_gaps(session: &SessionId, rows: &[Row], through: u64) -> Page {
    let is_full = rows.len() == PAGE;
    let through = rows.last().filter(|_| is_full).map_or(through, |row| row.seq);
    let mut at =
        rows.iter().find_map(|row| parse(row).ok()).map_or_else(Timestamp::default, |event| event.at);
    let event = |row: &Row| {
        let event = parse(row);
        let event =
            event.unwrap_or_else(|why| AgentEvent::unreadable(session.clone(), row.seq..=row.seq, at, why));
        at = event.at;
        event
    };
    Page { events: rows.iter().map(event).collect(), through }
}
