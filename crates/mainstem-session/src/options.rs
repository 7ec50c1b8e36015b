//! What a caller may say about one run.

use std::sync::Arc;

use mainstem_message::SessionId;
use serde_json::{Map, Value};

/// Settings of one run; all have defaults.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The session to go on with; a new one by default.
    pub session: Option<SessionId>,
    /// On whose behalf; tools and children see it.
    pub user: Option<Arc<str>>,
    /// Whatever tools and children should know besides.
    pub attributes: Map<String, Value>,
}

impl RunOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on with a session.
    #[must_use]
    pub fn with_session(mut self, session: impl Into<SessionId>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// On whose behalf.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }
}
