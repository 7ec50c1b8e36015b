//! From rows to events, on the thread that reads.

use mainstem_event::{AgentEvent, Page};
use mainstem_message::SessionId;

use super::{
    PAGE,
    table::{Found, Row},
};
use crate::JournalError;

fn parse(row: &Row) -> Result<AgentEvent, String> {
    let event: AgentEvent = serde_json::from_slice(&row.event).map_err(|error| error.to_string())?;
    if event.seq == row.seq { Ok(event) } else { Err(format!("it says that it is event {}", event.seq)) }
}

/// The events before the first that is damaged or missing, which is an error if it is the first of all.
pub(super) fn intact(session: &SessionId, found: &Found) -> Result<Vec<AgentEvent>, JournalError> {
    let mut events = Vec::with_capacity(found.rows.len());
    let mut rows = found.rows.iter();
    for seq in found.wanted.clone() {
        let event = match rows.next() {
            Some(row) if row.seq == seq => parse(row),
            // The database itself passes over what it can't read.
            _ => Err("it is missing".to_owned()),
        };
        match event {
            Ok(event) => events.push(event),
            Err(why) if events.is_empty() => {
                return Err(JournalError::Damaged { session: session.clone(), seq, why });
            }
            Err(_) => break,
        }
    }
    Ok(events)
}

/// All events that are intact, of rows that were asked for up to a number.
pub(super) fn what_is_left(rows: &[Row], through: u64) -> Page {
    let is_full = rows.len() == PAGE;
    let through = rows.last().filter(|_| is_full).map_or(through, |row| row.seq);
    Page { events: rows.iter().filter_map(|row| parse(row).ok()).collect(), through }
}
