//! Tools that run at the vendor of a model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A tool that the vendor of a model has, and runs itself while the model answers. A call of a
/// model whose API lacks it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerTool {
    /// Searches the web.
    WebSearch,
    /// Runs code that the model writes, in a container of the vendor.
    CodeExecution,
}

impl ServerTool {
    /// The names.
    pub const NAMES: [(&str, Self); 2] =
        [("web_search", Self::WebSearch), ("code_execution", Self::CodeExecution)];
}

impl fmt::Display for ServerTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, tool)| tool == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}
