//! Where results go that are too long for a conversation.

use std::fmt;

use async_trait::async_trait;

use crate::{ToolContext, ToolError};

/// Most bytes of text in one result: 64 KiB. A model would read more with every further call.
pub const MAX_RESULT_BYTES: usize = 64 << 10;

/// Where results are kept that are too long for a conversation.
#[async_trait]
pub trait Artifacts: Send + Sync + 'static {
    /// Keeps a text for the agent of the context. Returns where the agent finds it, as its tools
    /// for files take a path.
    ///
    /// # Errors
    /// It can't be kept; in words for the model, who then gets what fits.
    async fn keep(&self, cx: &ToolContext, text: &str) -> Result<String, ToolError>;
}

impl fmt::Debug for dyn Artifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Artifacts")
    }
}
