//! Identifiers: strings on the wire, distinct types in Rust, one shared allocation.

mod error;
mod grammar;
mod visitor;

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::error::IdError;
use self::{
    grammar::{PATTERN, SCOPED_PATTERN},
    visitor::Text,
};

/// What ids have in common with each other and with strings.
macro_rules! as_text {
    ($name:ident) => {
        impl $name {
            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
    };
}

/// Declares the ids that this program makes or that its callers choose.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $kind:literal, $pattern:ident, $recorded:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// 1 to 256 ASCII letters, digits and `-_.:~`, not beginning with a dot.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(#[schemars(with = "String", regex(pattern = $pattern))] Arc<str>);

        as_text!($name);

        impl $name {
            /// Creates an id from generated text: replaces each character that an id can't have
            /// with `_`, an empty text with `_`, and shortens a longer text in the middle.
            ///
            /// For sources of ids, whose texts differ at the end. Text of a caller is
            /// [parsed](Self::from_str).
            pub fn from_lossy(text: impl AsRef<str>) -> Self {
                Self(grammar::lossy(text.as_ref()))
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                match grammar::check(text) {
                    Ok(()) => Ok(Self(text.into())),
                    Err(fault) => Err(IdError::new($kind, text, fault)),
                }
            }
        }

        impl TryFrom<&str> for $name {
            type Error = IdError;

            fn try_from(text: &str) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text { kind: $kind, parse: Self::$recorded })
            }
        }
    )*};
}

/// Declares the ids that a store of several tenants records with the tenant's name.
macro_rules! scoped_ids {
    ($($name:ident = $kind:literal;)*) => {$(
        impl $name {
            /// Parses an id as a store records it: `id`, or `tenant/id` in a store that tenants
            /// share. This is also what deserialization accepts.
            ///
            /// For stores and for their operators: such an id reaches into a tenant's part of a
            /// store. Text of a caller is [parsed](Self::from_str) without tenants.
            ///
            /// # Errors
            /// If the text, or a part of it between slashes, is not an id.
            pub fn parse_scoped(text: &str) -> Result<Self, IdError> {
                match grammar::check_scoped(text) {
                    Ok(()) => Ok(Self(text.into())),
                    Err(fault) => Err(IdError::new($kind, text, fault)),
                }
            }

            /// Returns the id that a store of several tenants records for this one of a tenant.
            #[must_use]
            pub fn scoped(&self, tenant: &TenantName) -> Self {
                Self([tenant.as_str(), "/", self.as_str()].concat().into())
            }

            /// Returns the id within a tenant's part of a store; `None` if it is not in that part.
            pub fn unscoped(&self, tenant: &TenantName) -> Option<Self> {
                let own = self.0.strip_prefix(tenant.as_str())?.strip_prefix('/')?;
                Some(Self(own.into()))
            }

            /// Returns the name of the tenant that it is [scoped](Self::scoped) to, if it is.
            pub fn tenant(&self) -> Option<&str> {
                self.0.split_once('/').map(|(tenant, _)| tenant)
            }
        }
    )*};
}

ids! {
    /// A conversation. A child's own session is named `sub-…`.
    SessionId = "session id", SCOPED_PATTERN, parse_scoped;
    /// One turn of a root session.
    RunId = "run id", PATTERN, from_str;
    /// The whole reply of one invocation.
    ReplyId = "reply id", PATTERN, from_str;
    /// One instance of an agent, `agent:<agent_id>:<uuid>`: the handle that `agent_send` takes.
    AgentKey = "agent key", PATTERN, from_str;
    /// A background task.
    TaskId = "task id", SCOPED_PATTERN, parse_scoped;
    /// A job: a run at a time, or again and again.
    JobId = "job id", SCOPED_PATTERN, parse_scoped;
    /// A link, with which a session is read without a token of the server.
    LinkId = "link id", PATTERN, from_str;
    /// Data that is stored beside the events of a session: the SHA-256 of its bytes.
    DataId = "data id", PATTERN, from_str;
    /// A message.
    MessageId = "message id", PATTERN, from_str;
    /// A text, thinking or data block, unique within a reply.
    BlockId = "block id", PATTERN, from_str;
    /// A question to a person.
    ConfirmId = "confirmation id", PATTERN, from_str;
    /// A tenant, whose sessions and tasks have the name in front of their ids in a shared store.
    TenantName = "tenant name", PATTERN, from_str;
}

scoped_ids! {
    SessionId = "session id";
    TaskId = "task id";
    JobId = "job id";
}

/// A tool call, as the model named it.
///
/// Any text: it is the vendor's, is sent back to the vendor, and is compared, never parsed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ToolCallId(#[schemars(with = "String")] Arc<str>);

as_text!(ToolCallId);

impl ToolCallId {
    /// Creates an id from any text.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }
}

impl<T: Into<Arc<str>>> From<T> for ToolCallId {
    fn from(id: T) -> Self {
        Self(id.into())
    }
}

#[cfg(test)]
mod tests;
