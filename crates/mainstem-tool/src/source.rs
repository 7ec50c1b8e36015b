//! Tools that change while agents run.

use async_trait::async_trait;

use crate::ToolSet;

/// A source of tools that may change while agents run, such as a server. A [`ToolSet`] has sources
/// beside its own tools.
///
/// Each model call has the present tools.
#[async_trait]
pub trait ToolSource: Send + Sync + 'static {
    /// Returns its name, for lists and messages.
    fn name(&self) -> &str;

    /// Waits until its tools are known, within a bound; a source that can't be reached keeps its
    /// last tools. Awaited before each model call.
    ///
    /// # Cancel safety
    /// Dropping the future undoes nothing.
    async fn ready(&self);

    /// Returns the present tools.
    fn tools(&self) -> ToolSet;

    /// Returns `true` if the source would have a tool of that name, present or not.
    fn owns(&self, tool: &str) -> bool;

    /// Returns its problems, in words for people; empty if there are none.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}
