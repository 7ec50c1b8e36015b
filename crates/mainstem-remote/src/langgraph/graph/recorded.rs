//! What another process has shown of a turn, so that it is not shown twice. Pure.

use std::collections::HashSet;

use mainstem_event::fold::{RecordedCall, RecordedInvocation, RecordedTurn};

use super::{
    super::{interrupts::Questions, remote_id::RemoteId, speaker::Speaker},
    Graph,
};
use crate::{RemoteTurn, Translation};

/// What is recorded of the turn.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// The messages that are complete.
    shown: HashSet<String>,
    /// The calls that were discarded. They come again, under another id.
    discarded: HashSet<String>,
    /// How many agents below there were.
    pub(super) agents: usize,
}

impl Recorded {
    /// Messages of agents below that are running are not shown: they end, and others begin in
    /// their place.
    fn of(turn: &RecordedTurn) -> Self {
        let complete = std::iter::once(&turn.own).chain(turn.below.iter().filter(|one| one.is_over));
        let parts = &turn.own.parts;
        let is_discarded = |call: &RecordedCall| *call == RecordedCall::Discarded;
        let before = parts.calls.iter().filter(|(_, call)| is_discarded(call)).map(|(id, _)| id);
        let now = parts.attempt.iter().flat_map(|said| &said.tool_calls);
        Self {
            shown: complete.flat_map(messages).collect(),
            discarded: before.chain(now).map(|id| id.as_str().to_owned()).collect(),
            agents: turn.below.len(),
        }
    }

    /// Returns `true` if a message is shown.
    pub(super) fn has_shown(&self, message: &str) -> bool {
        self.shown.contains(message)
    }

    /// Gives a call that was discarded another id.
    pub(super) fn rename(&self, call: &mut String) {
        while self.discarded.contains(call) {
            call.push_str("-again");
        }
    }
}

/// Returns the messages that an invocation has complete.
fn messages(one: &RecordedInvocation) -> impl Iterator<Item = String> {
    let ids = one.parts.remote_ids.iter().filter_map(|id| RemoteId::parse(id));
    ids.map(|id| id.message.to_owned()).filter(|message| !message.is_empty())
}

impl Graph {
    /// Goes on with the turn of an assistant behind what another process has recorded of it.
    pub(in super::super) fn recorded(turn: RemoteTurn, assistant: &str, recorded: &RecordedTurn) -> Self {
        let own = &recorded.own;
        let speaker = Speaker::recorded(Translation::recorded(assistant, own), messages(own));
        // Each question has had a call, so the ids of further ones are new.
        let questions = Questions::after(own.parts.calls.len());
        Self { questions, recorded: Recorded::of(recorded), ..Self::with(turn, assistant, speaker) }
    }
}
