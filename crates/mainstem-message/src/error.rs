//! A failure as data, for events and results.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went wrong, for a program (`code`) and for a person (`message`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Failure {
    /// A stable word: `rate_limited`, `transport`, `panic` …
    pub code: String,
    /// A sentence that says what happened, where, and what to do.
    pub message: String,
}

impl Failure {
    /// Creates a failure from its parts.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
