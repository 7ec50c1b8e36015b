//! How well a stream arrived: the events of each invocation, those that one reader got, and the
//! time to the first token.

mod invocation;
mod table;

use std::collections::HashMap;

use mainstem_message::AgentKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::invocation::InvocationDiagnostics;
use crate::{AgentEvent, EventKind, fold::ROOT};

/// What one reader was handed of what happened, invocation by invocation; a pure fold, like
/// [`FleetState`](crate::FleetState).
///
/// Of every event, `received` counts what was produced, and exactly one of `forwarded`, `lost` and
/// `unread` what became of it. All times are milliseconds of the session's clock. `Display` is a
/// table.
///
/// ```
/// use mainstem_event::Diagnostics;
///
/// let diagnostics = Diagnostics::default();
/// assert_eq!((diagnostics.received(), diagnostics.invocations.len()), (0, 0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Diagnostics {
    /// The last event that went in.
    pub seq: u64,
    /// Events that the reader was handed, its gaps aside.
    pub forwarded: u64,
    /// Events that it can no longer get: its gaps.
    pub lost: u64,
    /// Events that were not read: the reader is behind, or was dropped.
    pub unread: u64,
    /// Events that the log no longer had when it was asked, so that their agents are unknown.
    pub unknown: u64,
    /// How many gaps the reader got.
    pub gaps: u64,
    /// Every invocation, in the order of its first event.
    pub invocations: Vec<InvocationDiagnostics>,
    #[serde(skip)]
    latest: Latest,
}

/// The latest invocation of each instance. An index, which equality ignores.
#[derive(Clone, Debug, Default)]
struct Latest(HashMap<Option<AgentKey>, usize>);

impl PartialEq for Latest {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What became of an event.
#[derive(Clone, Copy)]
enum Delivery {
    Forwarded,
    Lost,
    Unread,
}

impl Diagnostics {
    /// Applies the next item of the reader, an event or a gap. An item that was applied before is
    /// ignored.
    pub fn apply(&mut self, event: &AgentEvent) {
        if event.seq <= self.seq {
            return;
        }
        self.seq = event.seq;
        match &event.kind {
            EventKind::Gap { missed, per_agent, .. } => {
                self.gaps += 1;
                self.add(Delivery::Lost, *missed);
                for (name, count) in per_agent {
                    let key = (*name != ROOT).then(|| name.clone());
                    self.latest_of(key).lose(*count);
                }
            }
            _ => self.take(event, Delivery::Forwarded),
        }
    }

    /// Applies an event that the reader has not got, as read from the log. A gap counts as
    /// `unknown`.
    pub fn apply_unread(&mut self, event: &AgentEvent) {
        if event.seq <= self.seq {
            return;
        }
        self.seq = event.seq;
        match &event.kind {
            EventKind::Gap { missed, .. } => self.unknown += missed,
            _ => self.take(event, Delivery::Unread),
        }
    }

    /// Returns the number of produced events, as far as it is known.
    pub fn received(&self) -> u64 {
        self.forwarded + self.lost + self.unread
    }

    /// Returns the invocations of children.
    pub fn children(&self) -> impl Iterator<Item = &InvocationDiagnostics> {
        self.invocations.iter().filter(|invocation| invocation.agent_key.is_some())
    }

    fn take(&mut self, event: &AgentEvent, fate: Delivery) {
        self.add(fate, 1);
        if event.reply_id().is_some() {
            let invocation = self.of(event);
            invocation.count(fate, 1);
            invocation.apply(event);
        }
    }

    fn add(&mut self, fate: Delivery, events: u64) {
        match fate {
            Delivery::Forwarded => self.forwarded += events,
            Delivery::Lost => self.lost += events,
            Delivery::Unread => self.unread += events,
        }
    }

    /// Returns the invocation of an event: the latest of its instance, or a new one if that has an
    /// earlier turn.
    fn of(&mut self, event: &AgentEvent) -> &mut InvocationDiagnostics {
        let turn = event.source().map_or(1, |source| source.turn);
        let place = self.place_of(event.agent_key().cloned());
        // An invocation that is known from a gap alone has no turn.
        if ![0, turn].contains(&self.invocations[place].turn) {
            let place = self.push(event.agent_key().cloned());
            return &mut self.invocations[place];
        }
        &mut self.invocations[place]
    }

    fn latest_of(&mut self, key: Option<AgentKey>) -> &mut InvocationDiagnostics {
        let place = self.place_of(key);
        &mut self.invocations[place]
    }

    fn place_of(&mut self, key: Option<AgentKey>) -> usize {
        if self.latest.0.is_empty() {
            // The value is new, or was read from JSON.
            let keys = self.invocations.iter().map(|invocation| invocation.agent_key.clone());
            self.latest.0 = keys.zip(0..).collect();
        }
        match self.latest.0.get(&key) {
            Some(place) => *place,
            None => self.push(key),
        }
    }

    fn push(&mut self, key: Option<AgentKey>) -> usize {
        self.invocations.push(InvocationDiagnostics::new(key.clone()));
        self.latest.0.insert(key, self.invocations.len() - 1);
        self.invocations.len() - 1
    }
}

#[cfg(test)]
mod tests;
