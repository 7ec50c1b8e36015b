//! Links: with one, a session is read without a token of the server.

use mainstem_event::Timestamp;
use mainstem_message::{LinkId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link to create. With its token, the session's events, fleet and transcripts are read, and
/// nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct NewLink {
    /// In how many seconds it ends, 60 at least and 7776000 (90 days) at most. Default: 604800 (7
    /// days).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// The last event that it shows. Default: it shows all, later ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
}

impl NewLink {
    /// The shortest `expires_in`, in seconds.
    pub const SHORTEST: u64 = 60;
    /// The longest `expires_in`, in seconds.
    pub const LONGEST: u64 = 90 * 24 * 3600;
    /// The default of `expires_in`, in seconds.
    pub const DEFAULT: u64 = 7 * 24 * 3600;
}

/// A link of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct LinkView {
    /// Its id. It is not secret.
    pub id: LinkId,
    /// The session that it shows.
    pub session_id: SessionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The last event that it shows; absent if it shows all, later ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
}

/// A link that was created. Its token is shown this one time: the server stores a digest of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct NewLinkView {
    /// The link.
    pub link: LinkView,
    /// The bearer token of those who read with it.
    pub token: String,
    /// The address of the session on the server's page, relative to the server, with the token
    /// behind the `#`, which browsers send to no server. Absent if the server has no page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}
