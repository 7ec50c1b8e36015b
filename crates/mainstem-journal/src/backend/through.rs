//! How much of a session retention drops.

use mainstem_event::Timestamp;

use crate::{Cut, Journal, JournalError, Retention, SessionSummary};

/// Returns the number up to which retention drops a session's events; 0 if it drops none. Reads the
/// events a page of so many at a time.
///
/// # Errors
/// If the journal can't be read.
pub async fn dropped_through(
    journal: &dyn Journal,
    session: &SessionSummary,
    retention: &Retention,
    now: Timestamp,
    page: usize,
) -> Result<u64, JournalError> {
    let mut cut = Cut::new(retention, session.last, now);
    let mut from = session.first;
    loop {
        let events = match journal.read(&session.id, from, page).await {
            // The runs after a damaged event are unknown; and the session may have been deleted in
            // the meantime.
            Err(JournalError::Damaged { .. } | JournalError::Unknown { .. }) => Vec::new(),
            events => events?,
        };
        let goes_on = events.iter().all(|event| cut.apply(event));
        match events.last() {
            Some(last) if goes_on => from = last.seq + 1,
            _ => return Ok(cut.through()),
        }
    }
}
