//! Identifiers: strings on the wire, distinct types in Rust, one shared allocation.

use std::{borrow::Borrow, fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(#[schemars(with = "String")] Arc<str>);

        impl $name {
            /// Creates an id from any string; ids that come from outside are compared, never
            /// parsed.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

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

        impl<T: Into<Arc<str>>> From<T> for $name {
            fn from(id: T) -> Self {
                Self(id.into())
            }
        }
    )*};
}

ids! {
    /// A conversation. A child's own session is named `sub-…`.
    SessionId
    /// One turn of a root session.
    RunId
    /// The whole reply of one invocation.
    ReplyId
    /// One instance of an agent, `agent:<agent_id>:<uuid>`: the handle that `agent_send` takes.
    AgentKey
    /// A background task.
    TaskId
    /// A tool call, as the model named it.
    ToolCallId
    /// A message.
    MessageId
    /// A text, thinking or data block, unique within a reply.
    BlockId
    /// A question to a person.
    ConfirmId
}
