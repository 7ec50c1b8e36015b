//! Errors as [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457) describes them, with stable codes.

use std::fmt;

use mainstem_message::IdError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Declares the codes once: the variant, the word on the wire, the HTTP status, the meaning.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $status:literal;)*) => {
        /// A stable code of a [`Problem`].
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)*
            /// A code of a newer server.
            Other(Box<str>),
        }

        impl Code {
            /// All codes of this version.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the word on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Other(word) => word,
                }
            }

            /// Returns the HTTP status of a response with this code.
            pub fn status(&self) -> u16 {
                match self {
                    $(Self::$name => $status,)*
                    Self::Other(_) => 500,
                }
            }
        }

        impl From<&str> for Code {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$name,)*
                    other => Self::Other(other.into()),
                }
            }
        }
    };
}

codes! {
    /// The child was closed.
    AgentClosed = "agent_closed", 409;
    /// The agent can't lead a run at the moment.
    AgentUnusable = "agent_unusable", 503;
    /// The body does not have the required form; `errors` has the places.
    BadBody = "bad_body", 422;
    /// The number is not that of an event.
    BadCursor = "bad_cursor", 400;
    /// The id of a session, run, task, agent or request is invalid.
    BadId = "bad_id", 400;
    /// The `Idempotency-Key` is invalid.
    BadIdempotencyKey = "bad_idempotency_key", 400;
    /// The body is not JSON.
    BadJson = "bad_json", 400;
    /// A part of the path is invalid.
    BadPath = "bad_path", 400;
    /// A query parameter is invalid.
    BadQuery = "bad_query", 400;
    /// The token is invalid.
    BadToken = "bad_token", 401;
    /// The body is too large.
    BodyTooLarge = "body_too_large", 413;
    /// The body did not arrive in time.
    BodyTooSlow = "body_too_slow", 408;
    /// The body could not be read.
    BodyUnreadable = "body_unreadable", 400;
    /// The body has a `Content-Encoding`.
    EncodedBody = "encoded_body", 415;
    /// There is an object of this id already.
    Exists = "exists", 409;
    /// The events are no longer stored; `oldest_seq` is the oldest that is.
    Gone = "gone", 410;
    /// The server does not answer under this name.
    HostNotAllowed = "host_not_allowed", 403;
    /// The key was used for another request.
    IdempotencyKeyReused = "idempotency_key_reused", 422;
    /// The job is over.
    JobOver = "job_over", 409;
    /// Sessions can't be read or recorded at the moment.
    JournalUnavailable = "journal_unavailable", 503;
    /// The link has ended, was revoked, or never existed.
    LinkOver = "link_over", 401;
    /// The path does not take this method.
    MethodNotAllowed = "method_not_allowed", 405;
    /// The server has no journal, so it stores no data of messages.
    NoData = "no_data", 409;
    /// The server has no journal, so it stores no jobs.
    NoJobs = "no_jobs", 409;
    /// The server has no journal, so it stores no links.
    NoLinks = "no_links", 409;
    /// There is nothing at this path.
    NoSuchPath = "no_such_path", 404;
    /// A token is required.
    NoToken = "no_token", 401;
    /// The request does not exist, or was answered already.
    NotAsked = "not_asked", 409;
    /// The session, run, task, agent or event does not exist.
    NotFound = "not_found", 404;
    /// The session has no turn to resume.
    NothingToResume = "nothing_to_resume", 409;
    /// The body is not declared as bytes.
    NotBytes = "not_bytes", 415;
    /// The body is not declared as JSON.
    NotJson = "not_json", 415;
    /// This place only reads recorded sessions, and can't steer their runs.
    NotSteerable = "not_steerable", 409;
    /// The agent can be spawned, and can't lead a run.
    OnlySpawned = "only_spawned", 422;
    /// The leading agent takes messages only while a run is active, and not for its next turn.
    OnlyWithinTurn = "only_within_turn", 409;
    /// Only the operator may request this.
    OperatorOnly = "operator_only", 403;
    /// The token is that of a link, which only reads its session.
    ReadOnly = "read_only", 403;
    /// A run of the session is active; `run_id` names it.
    RunActive = "run_active", 409;
    /// The JSON Schema exceeds a limit; `limit` names it.
    SchemaLimit = "schema_limit", 422;
    /// The session is in use.
    SessionBusy = "session_busy", 409;
    /// The server is shutting down.
    ShuttingDown = "shutting_down", 503;
    /// The task has not ended, so its record can't be removed.
    TaskRunning = "task_running", 409;
    /// The records of tasks can't be read or written.
    TasksUnreadable = "tasks_unreadable", 500;
    /// The tenant can't be opened.
    TenantUnusable = "tenant_unusable", 500;
    /// Too much data waits for the caller's sessions to begin.
    TooMuchData = "too_much_data", 429;
    /// The tenant's share of request bodies is in use.
    TooManyBodies = "too_many_bodies", 429;
    /// The tenant's share of connections is in use.
    TooManyConnections = "too_many_connections", 429;
    /// The tenant has too many jobs that are not over.
    TooManyJobs = "too_many_jobs", 429;
    /// The session has too many links.
    TooManyLinks = "too_many_links", 429;
    /// The session has too many readers.
    TooManyReaders = "too_many_readers", 429;
    /// The tenant's share of runs is in use.
    TooManyRuns = "too_many_runs", 429;
    /// The tenant's share of open sessions is in use.
    TooManySessions = "too_many_sessions", 429;
    /// The request names two hosts.
    TwoHosts = "two_hosts", 400;
    /// The agent does not exist.
    UnknownAgent = "unknown_agent", 404;
    /// The server does not let callers choose this model.
    UnknownModel = "unknown_model", 422;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(Self::from(&*word))
    }
}

impl JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<_> = Self::ALL.iter().map(Self::as_str).collect();
        json_schema!({ "type": "string", "examples": words })
    }
}

/// Why a request was refused: by a server as the body of a response, by a local session as an
/// error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{detail}")]
#[non_exhaustive]
pub struct Problem {
    /// A relative URI that stands for the code.
    #[serde(default)]
    pub r#type: String,
    /// The name of the status.
    #[serde(default)]
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// For people.
    pub detail: String,
    /// For programs; stable.
    pub code: Code,
    /// Further members, which depend on the code.
    #[serde(flatten)]
    pub more: Box<Map<String, Value>>,
}

impl From<IdError> for Problem {
    fn from(error: IdError) -> Self {
        Self::new(Code::BadId, error.to_string())
    }
}

impl Problem {
    /// Creates a problem of this code; the detail is for people.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let status = code.status();
        let r#type = format!("/problems/{}", code.as_str().replace('_', "-"));
        Self {
            r#type,
            title: title(status).to_owned(),
            status,
            detail: detail.into(),
            code,
            more: Box::default(),
        }
    }

    /// Returns the same for what does not exist and for what belongs to another tenant.
    pub fn not_found(kind: &str, id: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no {kind} {id:?}"))
    }

    /// Adds a member.
    #[must_use]
    pub fn with_member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }
}

/// Returns the name of a status ([RFC 9110](https://www.rfc-editor.org/rfc/rfc9110#section-15)), of
/// those that codes have.
fn title(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests;
