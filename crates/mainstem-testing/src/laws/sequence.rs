//! Laws 1 and 8: numbers rise by one, or by exactly the count of a gap.

use mainstem_event::{AgentEvent, EventKind};

use super::Violation;

/// Checks them. Returns `true` if there is a gap.
pub(super) fn check(events: &[AgentEvent]) -> Result<bool, Violation> {
    let mut has_gap = false;
    let mut last: Option<u64> = None;
    for event in events {
        if event.session_id() != events[0].session_id() {
            return Err(Violation::new(1, event.seq, format!("an event of session {}", event.session_id())));
        }
        let expected = last.map_or(event.seq, |last| last.saturating_add(1));
        if let EventKind::Gap { from_seq, to_seq, missed, per_agent, .. } = &event.kind {
            has_gap = true;
            gap(event, last.map_or(*from_seq, |_| expected), (*from_seq, *to_seq, *missed))?;
            let counted: u64 = per_agent.values().sum();
            if !per_agent.is_empty() && counted != *missed {
                return Err(Violation::new(
                    8,
                    event.seq,
                    format!("the gap of {missed} counts {counted} per agent"),
                ));
            }
        } else if event.seq != expected {
            return Err(Violation::new(1, event.seq, format!("expected event {expected}")));
        }
        last = Some(event.seq);
    }
    Ok(has_gap)
}

fn gap(event: &AgentEvent, expected: u64, (from, to, missed): (u64, u64, u64)) -> Result<(), Violation> {
    if from != expected || to < from || event.seq != to {
        return Err(Violation::new(
            1,
            event.seq,
            format!("the gap says {from}–{to}, and {expected} is next"),
        ));
    }
    if missed != to - from + 1 {
        return Err(Violation::new(8, event.seq, format!("the gap says {missed} of {from}–{to}")));
    }
    Ok(())
}
