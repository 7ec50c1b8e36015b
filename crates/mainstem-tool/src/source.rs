//! Tools that come and go.

use async_trait::async_trait;

use crate::ToolSet;

/// Where tools come from that may change while agents run, such as a server: what a [`ToolSet`]
/// holds beside tools of its own.
///
/// An agent that has it sees, with each model call, the tools that there are by then.
#[async_trait]
pub trait ToolSource: Send + Sync + 'static {
    /// What it is called, in lists and messages.
    fn name(&self) -> &str;

    /// Waits until it is known which tools there are, as long as that is worth waiting for; a
    /// source that can't be reached has the tools it had. Awaited before each model call.
    ///
    /// # Cancel safety
    /// Whoever waits may stop waiting; nothing is undone.
    async fn ready(&self);

    /// Those that there are now.
    fn tools(&self) -> ToolSet;

    /// Whether a tool of that name would be this source's, be it there or not.
    fn owns(&self, tool: &str) -> bool;

    /// What is wrong with it, in words; nothing if all is well.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}
