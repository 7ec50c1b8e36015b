//! Cancelling an invocation for a reason.

use std::sync::{Arc, OnceLock};

use mainstem_event::CancelReason;
use tokio_util::sync::CancellationToken;

/// Cancels an invocation for a reason that all work below it can read. Cheap to clone; clones share
/// the state.
///
/// ```
/// use mainstem_event::CancelReason;
/// use mainstem_react::Cancellation;
///
/// let parent = Cancellation::new();
/// let child = parent.below(&"main".into());
/// parent.cancel(CancelReason::user("Ctrl-C"));
/// assert_eq!(child.reason(), Some(CancelReason::user("Ctrl-C")));
/// ```
#[derive(Clone, Debug)]
pub struct Cancellation(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    token: CancellationToken,
    reason: OnceLock<CancelReason>,
    above: Above,
}

/// The parent of a cancellation.
#[derive(Debug)]
enum Above {
    Nothing,
    /// The invocation of an agent.
    Agent(Arc<str>, Cancellation),
    /// A token that is cancelled for this reason only.
    Token(CancelReason),
}

impl Cancellation {
    /// Creates a cancellation without a parent.
    pub fn new() -> Self {
        Self::of(CancellationToken::new(), Above::Nothing)
    }

    /// Creates a cancellation that is also cancelled by a token; `reason` is why the token is
    /// cancelled.
    pub fn below_token(token: &CancellationToken, reason: CancelReason) -> Self {
        Self::of(token.child_token(), Above::Token(reason))
    }

    /// Creates a child cancellation; `agent` is the agent that this one belongs to.
    #[must_use]
    pub fn below(&self, agent: &Arc<str>) -> Self {
        Self::of(self.0.token.child_token(), Above::Agent(agent.clone(), self.clone()))
    }

    fn of(token: CancellationToken, above: Above) -> Self {
        Self(Arc::new(Parts { token, reason: OnceLock::new(), above }))
    }

    /// Cancels for a reason. The first reason counts.
    pub fn cancel(&self, reason: CancelReason) {
        if !self.is_cancelled() {
            // Of concurrent calls, the first reason wins.
            let _ = self.0.reason.set(reason);
        }
        self.0.token.cancel();
    }

    /// Returns `true` if it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.token.is_cancelled()
    }

    /// Resolves when it is cancelled.
    pub async fn cancelled(&self) {
        self.0.token.cancelled().await;
    }

    /// Returns the reason; `None` if it is not cancelled.
    pub fn reason(&self) -> Option<CancelReason> {
        if !self.is_cancelled() {
            return None;
        }
        let above = || match &self.0.above {
            Above::Agent(agent, above) => above.reason().map(|reason| reason.below(agent)),
            Above::Token(reason) => Some(reason.clone()),
            Above::Nothing => None,
        };
        let own = self.0.reason.get().cloned();
        // A token cancelled directly carries no reason.
        Some(own.or_else(above).unwrap_or(CancelReason::User { how: None }))
    }

    /// Returns its token, for code that takes one.
    pub fn token(&self) -> &CancellationToken {
        &self.0.token
    }
}

/// For callers that have a token and no reason.
impl From<CancellationToken> for Cancellation {
    fn from(token: CancellationToken) -> Self {
        Self::of(token, Above::Nothing)
    }
}

impl Default for Cancellation {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
