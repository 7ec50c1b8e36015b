//! The context of a tool call.

use std::{any::Any, fmt, future::Future, sync::Arc};

use mainstem_event::{EventSource, Timestamp};
use mainstem_message::{RunId, SessionId, ToolCallId};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{Progress, Stop, ToolHost, blocking::blocking};

/// One tool call, as the tool sees it: its caller and user, its time, and its progress.
///
/// Cheap to clone; the first parameter of every tool. A tool that runs for a while streams its
/// findings and ends early when the run is cancelled:
///
/// ```
/// use mainstem_tool::{ToolContext, ToolError, unless};
///
/// async fn crawl(cx: ToolContext, pages: Vec<String>) -> Result<String, ToolError> {
///     for page in &pages {
///         let fetched = unless(cx.cancelled(), fetch(page)).await;
///         let text = fetched.ok_or_else(|| ToolError::new("stopped before all pages were read"))?;
///         cx.progress(format!("{page}: {} bytes\n", text.len())).await;
///     }
///     Ok(format!("{} pages for {}", pages.len(), cx.user().unwrap_or("all")))
/// }
/// # async fn fetch(page: &str) -> String { page.to_owned() }
/// ```
///
/// The rest of an agent's loop (events, conversation, budgets) is in the engine's
/// `mainstem_react::RunContext`.
#[derive(Clone)]
pub struct ToolContext {
    host: Arc<dyn ToolHost>,
}

impl ToolContext {
    /// Creates the context of a call that `host` makes.
    pub fn new(host: Arc<dyn ToolHost>) -> Self {
        Self { host }
    }

    // Identity.

    /// Returns the id of the call.
    pub fn call_id(&self) -> &ToolCallId {
        self.host.call_id()
    }

    /// Returns the id of the calling agent.
    pub fn agent(&self) -> &str {
        self.host.agent()
    }

    /// Returns the calling agent's source: instance, depth and parents; `None` for the root.
    pub fn source(&self) -> Option<&EventSource> {
        self.host.source()
    }

    /// Returns the calling agent's own session: the root's, or `sub-…`.
    pub fn session_id(&self) -> &SessionId {
        self.host.session_id()
    }

    /// Returns the run; `None` if the agent runs outside a session.
    pub fn run_id(&self) -> Option<&RunId> {
        self.host.run_id()
    }

    /// Returns the user on whose behalf the agent runs.
    pub fn user(&self) -> Option<&str> {
        self.host.user()
    }

    /// Returns the attributes of the run.
    ///
    /// ```
    /// # use mainstem_tool::ToolContext;
    /// fn tenant(cx: &ToolContext) -> Option<&str> {
    ///     cx.attributes().get("tenant")?.as_str()
    /// }
    /// ```
    pub fn attributes(&self) -> &Map<String, Value> {
        self.host.attributes()
    }

    /// Returns a value of the embedding application by its type, such as one that a middleware
    /// attached to the call.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.host.value(std::any::TypeId::of::<T>())?.downcast().ok()
    }

    // Time.

    /// Returns the current time of the session's clock.
    pub fn now(&self) -> Timestamp {
        self.host.now()
    }

    /// Returns when the time for the call is over: that of the run's budget, or of the spawn that
    /// awaits the agent. `None` without a limit, and in a background task. The call is cancelled
    /// then, or later: time during which the run is not read does not count.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use mainstem_tool::ToolContext;
    ///
    /// /// How long to wait for a server that has a minute by default.
    /// fn patience(cx: &ToolContext) -> Duration {
    ///     let left = cx.deadline().map(|deadline| deadline.millis_since(cx.now()));
    ///     left.map_or(Duration::MAX, Duration::from_millis).min(Duration::from_secs(60))
    /// }
    /// ```
    pub fn deadline(&self) -> Option<Timestamp> {
        self.host.deadline()
    }

    /// Resolves when the call is cancelled. The tool has the agent's grace period from then on;
    /// then its future is dropped.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send {
        self.cancellation().cancelled()
    }

    /// Returns `true` if the call is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation().is_cancelled()
    }

    /// Returns the token behind [`cancelled`](Self::cancelled), for code that takes one.
    pub fn cancellation(&self) -> &CancellationToken {
        self.host.cancellation()
    }

    // Progress and blocking work.

    /// Streams a part of the result, which the model also sees as part of the result. The future
    /// waits while the reader is behind; await it. The host streams at most
    /// [`MAX_RESULT_BYTES`](crate::MAX_RESULT_BYTES) of a call.
    ///
    /// # Cancel safety
    /// The text is sent before the first wait.
    pub fn progress(&self, text: impl Into<String>) -> Progress<'_> {
        Progress::new(self.host.progress(text.into()))
    }

    /// Runs blocking work (files, long computations) on a thread of its own and returns its output.
    /// It can't be ended from outside: a cancel of the call and a drop of this future both set its
    /// [`Stop`], after which it should return soon.
    ///
    /// ```
    /// use mainstem_tool::{ToolError, tool_fn};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Count {
    ///     most: u64,
    /// }
    ///
    /// let count = tool_fn("count", "Count to a number", |cx, Count { most }| async move {
    ///     let counted = cx.blocking(move |stop| (0..most).take_while(|_| !stop.is_set()).count());
    ///     Ok::<_, ToolError>(counted.await.to_string())
    /// });
    /// # let _ = count;
    /// ```
    ///
    /// # Panics
    /// If the work panics, which in a tool call is an error result; and outside a tokio runtime.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce(&Stop) -> T + Send + 'static) -> T {
        blocking(self.cancellation(), work).await
    }

    /// Returns the host if it is of this type. For the crate that defines the host; a tool does not
    /// need it.
    pub fn host<H: ToolHost>(&self) -> Option<&H> {
        let host: &dyn Any = &*self.host;
        host.downcast_ref()
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut context = f.debug_struct("ToolContext");
        context.field("agent", &self.agent()).field("call", self.call_id()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
