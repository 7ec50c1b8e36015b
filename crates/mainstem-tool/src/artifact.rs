//! The store of results that are too long for a conversation.

use std::fmt;

use async_trait::async_trait;

use crate::{ToolContext, ToolError};

/// The maximum number of bytes of text in one result: 64 KiB. A model reads it again with every
/// further call.
pub const MAX_RESULT_BYTES: usize = 64 << 10;

/// Stores results that are too long for a conversation.
#[async_trait]
pub trait Artifacts: Send + Sync + 'static {
    /// Stores a text for the agent of the context. Returns its path for the agent's file tools.
    ///
    /// # Errors
    /// If it can't be stored; the message is for the model, which then gets a part of the text.
    async fn store(&self, cx: &ToolContext, text: &str) -> Result<String, ToolError>;
}

impl fmt::Debug for dyn Artifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Artifacts")
    }
}
