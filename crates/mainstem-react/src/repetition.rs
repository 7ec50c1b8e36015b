//! Detects an agent that makes the same calls again and again, with the same results. Pure.

use std::hash::{DefaultHasher, Hash, Hasher};

use mainstem_message::{ContentBlock, ToolCall, ToolResult};

/// How often an agent may repeat itself.
///
/// A *round* is the tool calls of one answer with their results. Rounds are equal if the names and
/// arguments of the calls are, and the results. An agent that goes in a circle repeats a sequence
/// of rounds. Rounds with a [polled](mainstem_tool::Tool::is_polled) tool do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepetitionLimits {
    /// After how many repetitions in a row the agent is told, in a hint. Default 3; 0 turns it off.
    pub told: u32,
    /// After how many repetitions in a row the agent ends, with
    /// [`AgentError::NoProgress`](crate::AgentError::NoProgress). Default 10; 0 turns it off.
    pub ended: u32,
    /// The rounds of the longest circle that is detected. Default 4.
    pub longest: usize,
}

impl Default for RepetitionLimits {
    fn default() -> Self {
        Self { told: 3, ended: 10, longest: 4 }
    }
}

impl RepetitionLimits {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns limits that nothing exceeds.
    pub fn off() -> Self {
        Self { told: 0, ended: 0, longest: 0 }
    }

    /// Sets after how many repetitions the agent is told.
    #[must_use]
    pub fn with_told(mut self, repetitions: u32) -> Self {
        self.told = repetitions;
        self
    }

    /// Sets after how many repetitions the agent ends.
    #[must_use]
    pub fn with_ended(mut self, repetitions: u32) -> Self {
        self.ended = repetitions;
        self
    }

    /// Sets the rounds of the longest circle.
    #[must_use]
    pub fn with_longest(mut self, rounds: usize) -> Self {
        self.longest = rounds;
        self
    }
}

/// The most rounds that are remembered.
const MAX_ROUNDS: usize = 4_096;

/// What follows from a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoOn,
    /// The agent is told that it repeats itself.
    Tell,
    /// The agent ends after so many repetitions.
    End(u32),
}

/// The rounds of an agent so far.
#[derive(Debug)]
pub(crate) struct Repetition {
    limits: RepetitionLimits,
    /// The latest rounds, as far as they can matter.
    rounds: Vec<u64>,
    /// Whether the agent was told of the present repetition.
    is_told: bool,
}

impl Repetition {
    pub(crate) fn new(limits: RepetitionLimits) -> Self {
        Self { limits, rounds: Vec::new(), is_told: false }
    }

    /// Takes in a round.
    pub(crate) fn round<'a>(
        &mut self,
        calls: &[ToolCall],
        results: impl Iterator<Item = &'a ToolResult>,
    ) -> Verdict {
        let RepetitionLimits { told, ended, longest } = self.limits;
        let most = (told.max(ended) as usize).saturating_mul(longest).min(MAX_ROUNDS);
        if most == 0 {
            return Verdict::GoOn;
        }
        if self.rounds.len() == most {
            self.rounds.remove(0);
        }
        self.rounds.push(hash(calls, results));
        let repetitions = (1..=longest).map(|period| self.repetitions(period)).max().unwrap_or(0);
        if repetitions < 2 {
            self.is_told = false;
        }
        match repetitions {
            many if ended > 0 && many >= ended => Verdict::End(many),
            many if told > 0 && many >= told && !self.is_told => {
                self.is_told = true;
                Verdict::Tell
            }
            _ => Verdict::GoOn,
        }
    }

    /// Returns how often the last `period` rounds have come in a row.
    fn repetitions(&self, period: usize) -> u32 {
        let mut periods = self.rounds.rchunks_exact(period);
        let Some(last) = periods.next() else { return 0 };
        1 + periods.take_while(|before| *before == last).count() as u32
    }
}

fn hash<'a>(calls: &[ToolCall], results: impl Iterator<Item = &'a ToolResult>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for call in calls {
        (&call.name, &call.arguments).hash(&mut hasher);
    }
    for result in results {
        result.state.as_str().hash(&mut hasher);
        for block in &result.content {
            match block {
                // A long result is in a file that has the name of its call.
                ContentBlock::Text { text, .. } => match result.tool_call_id.as_str() {
                    "" => text.hash(&mut hasher),
                    call => text.split(call).for_each(|part| part.hash(&mut hasher)),
                },
                other => format!("{other:?}").hash(&mut hasher),
            }
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
