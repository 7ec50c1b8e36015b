//! How long a prompt is, and how long its parts may be. Pure.

use std::sync::Arc;

use mainstem_message::ToolSpec;
use mainstem_model::{ModelRequest, size_of_tool};

use super::{Compaction, plan, share};

/// Texts below this size, in bytes, are not split further.
pub(super) const SMALL: usize = 4_096;

/// The bytes of a token, before a service has counted.
const TOKEN: f64 = 4.0;

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The next prompt would exceed the threshold.
    Full,
    /// The service refused a prompt.
    Refused,
    /// A person asked for it.
    Asked,
}

/// The parts of a prompt, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// What the messages may have.
    pub(super) messages: usize,
    /// What the latest of them may have.
    pub(super) latest: usize,
    /// What the notes may have, and what results that last may have.
    pub(super) notes: usize,
    /// What one call for the summary may have, which has neither tools nor instructions of the
    /// agent.
    pub(super) piece: usize,
}

/// The size of a prompt in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(super) messages: usize,
    /// Instructions and tools.
    pub(super) overhead: usize,
}

impl Size {
    fn total(self) -> usize {
        self.messages + self.overhead
    }
}

/// Estimates the tokens of prompts from their bytes.
#[derive(Debug)]
pub(super) struct Estimate {
    /// The bytes of a token, as the service counts.
    token: f64,
    /// The tools whose size is known.
    tools: Option<(Arc<[ToolSpec]>, usize)>,
}

impl Estimate {
    /// Creates an estimate from the bytes of a token that the service last counted.
    pub(super) fn new(token: Option<f64>) -> Self {
        Self { token: token.unwrap_or(TOKEN), tools: None }
    }

    /// Returns `true` if a prompt exceeds a limit in tokens. A limit that leaves its messages too
    /// little room is ignored: they can't be made short enough.
    pub(super) fn exceeds(&self, size: Size, limit: u64) -> bool {
        let limit = self.bytes(limit);
        size.overhead + SMALL <= limit && size.total() > limit
    }

    /// Learns from the service's count of a prompt how many bytes a token has; returns that.
    pub(super) fn calibrate(&mut self, size: Size, tokens: u64) -> f64 {
        let bytes = size.total();
        if bytes > 0 && tokens > 0 {
            self.token = (as_f64(bytes as u64) / as_f64(tokens)).clamp(TOKEN / 2.0, TOKEN * 2.0);
        }
        self.token
    }

    /// Measures a request.
    pub(super) fn size(&mut self, request: &ModelRequest) -> Size {
        Size { messages: plan::size(&request.messages), overhead: self.overhead(request) }
    }

    /// Returns the size of instructions and tools.
    fn overhead(&mut self, request: &ModelRequest) -> usize {
        let known = self.tools.as_ref().filter(|(tools, _)| Arc::ptr_eq(tools, &request.tools));
        let tools = match known {
            Some((_, size)) => *size,
            None => {
                let size = request.tools.iter().map(size_of_tool).sum();
                self.tools = Some((request.tools.clone(), size));
                size
            }
        };
        tools + request.system.as_ref().map_or(0, |text| text.len())
    }

    /// Returns how long messages may become, given the context window of the model. If it is
    /// unknown, it is estimated as a little less than the prompt.
    pub(super) fn room(
        &mut self,
        request: &ModelRequest,
        cause: Cause,
        compaction: &Compaction,
        known: Option<u64>,
    ) -> Room {
        let size = self.size(request);
        let (said, overhead) = (size.messages, size.overhead);
        let sent = share(self.tokens(size.total()), 0.9);
        let window = match cause {
            Cause::Refused => known.map_or(sent, |window| window.min(sent)),
            Cause::Full | Cause::Asked => known.unwrap_or(sent),
        };
        let limit = self.bytes(compaction.limit(window, &request.options));
        let fits = limit.saturating_sub(overhead);
        let messages = match cause {
            Cause::Full => fits,
            // The estimate may be wrong: a half is shorter in any case.
            Cause::Refused => fits.max(said / 2),
            // The prompt did fit.
            Cause::Asked => fits.max(said),
        };
        let keep = self.bytes(share(window, compaction.keep)).max(said / 4).min(messages / 2);
        let latest = if cause == Cause::Asked { keep.min(said / 4) } else { keep };
        Room { messages, latest, notes: latest.min(messages / 4), piece: (limit / 4 * 3).max(SMALL) }
    }

    fn tokens(&self, bytes: usize) -> u64 {
        share(bytes as u64, 1.0 / self.token)
    }

    fn bytes(&self, tokens: u64) -> usize {
        usize::try_from(share(tokens, self.token)).unwrap_or(usize::MAX)
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn as_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
