//! A person's decision about tool calls.

use serde_json::Value;

/// The answer to a request for approval (`REQUIRE_USER_CONFIRM`).
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "yes, yes with other arguments, no")]
pub enum Decision {
    /// The call may run.
    Allow,
    /// The call may run with these arguments instead of the model's.
    AllowWith(Value),
    /// The call must not run; the model reads the reason.
    Deny(String),
}
