//! Errors of models.

use std::{error::Error, fmt, num::NonZeroU32, sync::Arc, time::Duration};

use mainstem_message::Failure;

/// A failed model call. Use its predicates ([`is_retryable`](Self::is_retryable),
/// [`retry_after`](Self::retry_after)) rather than matching on its kind.
///
/// ```
/// use std::time::Duration;
///
/// use mainstem_model::{ErrorKind, ModelError};
///
/// let busy = ModelError::new(ErrorKind::RateLimited, "too many requests")
///     .with_retry_after(Duration::from_secs(2));
/// assert!(busy.is_retryable());
/// let refused = ModelError::new(ErrorKind::InvalidRequest, "no such field");
/// assert!(!refused.is_retryable());
/// ```
#[derive(Clone, Debug)]
pub struct ModelError {
    kind: ErrorKind,
    message: Box<str>,
    status: Option<u16>,
    retry_after: Option<Duration>,
    /// Small, because errors are large enough.
    context_window: Option<NonZeroU32>,
    is_repeated: bool,
    is_too_large: bool,
    is_about_data: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No key, a wrong key, or no right to this model.
    Auth,
    /// Too many requests just now.
    RateLimited,
    /// No quota or credit left: waiting does not help.
    QuotaExceeded,
    /// The service has no capacity now.
    Overloaded,
    /// The service failed.
    Server,
    /// The conversation is longer than the model reads, or larger than the service accepts (413).
    ContextOverflow,
    /// The service does not accept the request.
    InvalidRequest,
    /// The service does not know the model or the address.
    NotFound,
    /// No data came in time.
    Timeout,
    /// The connection failed or was cut.
    Transport,
    /// The service sent something that is not valid in its own format.
    Protocol,
    /// The model or the provider does not support the request.
    Unsupported,
}

impl ErrorKind {
    /// Returns the stable word for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimited => "rate_limited",
            Self::QuotaExceeded => "quota_exceeded",
            Self::Overloaded => "overloaded",
            Self::Server => "server_error",
            Self::ContextOverflow => "context_overflow",
            Self::InvalidRequest => "invalid_request",
            Self::NotFound => "not_found",
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::Protocol => "protocol",
            Self::Unsupported => "unsupported",
        }
    }
}

impl ModelError {
    /// Creates a failure with a sentence that says what happened, where, and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into().into_boxed_str(),
            status: None,
            retry_after: None,
            context_window: None,
            is_repeated: false,
            is_too_large: false,
            is_about_data: false,
            source: None,
        }
    }

    /// Sets whether the request had too many bytes for the service, rather than too many tokens.
    #[must_use]
    pub fn with_too_large(self, is_too_large: bool) -> Self {
        Self { is_too_large, ..self }
    }

    /// Returns `true` if the request had too many bytes for the service, such as those of images:
    /// fewer tokens alone do not help.
    pub fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Sets whether the service can't read data of the conversation.
    #[must_use]
    pub fn with_about_data(self, is_about_data: bool) -> Self {
        Self { is_about_data, ..self }
    }

    /// Returns `true` if the service can't read an image, a document or audio of the conversation:
    /// without it, it could answer.
    pub fn is_about_data(&self) -> bool {
        self.is_about_data
    }

    /// Returns the failure for an HTTP status.
    pub fn from_status(status: u16, message: impl Into<String>) -> Self {
        let kind = match status {
            401 | 403 => ErrorKind::Auth,
            402 => ErrorKind::QuotaExceeded,
            404 => ErrorKind::NotFound,
            408 | 504 => ErrorKind::Timeout,
            413 => ErrorKind::ContextOverflow,
            429 => ErrorKind::RateLimited,
            503 | 529 => ErrorKind::Overloaded,
            400..=499 => ErrorKind::InvalidRequest,
            _ => ErrorKind::Server,
        };
        Self { status: Some(status), is_too_large: status == 413, ..Self::new(kind, message) }
    }

    /// Sets the HTTP status; the kind stays.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets how long the service asks to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Notes how often the call was sent: [`Retry`](crate::Retry) does not repeat it once more.
    #[must_use]
    pub fn with_repeats(mut self, sent: u32) -> Self {
        self.message = format!("{} (refused {sent} times)", self.message).into();
        self.is_repeated = true;
        self
    }

    /// Sets the model's context window in tokens, which the service names if a conversation is too
    /// long.
    #[must_use]
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.context_window = NonZeroU32::new(u32::try_from(tokens).unwrap_or(u32::MAX));
        self
    }

    /// Leaves out the context window, as where the model's name is not that of the call.
    #[must_use]
    pub fn without_context_window(mut self) -> Self {
        self.context_window = None;
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the HTTP status, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns how long the service asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the model's context window in tokens, if the service named it.
    pub fn context_window(&self) -> Option<u64> {
        self.context_window.map(|tokens| tokens.get().into())
    }

    /// Returns `true` if the call was repeated already, until that seemed in vain.
    pub fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Returns `true` if the same request may succeed a moment later.
    pub fn is_retryable(&self) -> bool {
        use ErrorKind::{Overloaded, RateLimited, Server, Timeout, Transport};
        matches!(self.kind, RateLimited | Overloaded | Server | Timeout | Transport)
    }

    /// Returns `true` if the same request may succeed after this failure of an answer that had
    /// begun: the service can give the answer, so a piece that is not valid in its format counts as
    /// a fault of the connection.
    pub fn is_cut(&self) -> bool {
        self.is_retryable() || self.kind == ErrorKind::Protocol
    }

    /// Returns `true` if the provider refused: for its key, its quota, its rules.
    pub fn is_refusal(&self) -> bool {
        use ErrorKind::{Auth, Overloaded, QuotaExceeded, RateLimited};
        matches!(self.kind, Auth | RateLimited | QuotaExceeded | Overloaded)
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<&ModelError> for Failure {
    fn from(error: &ModelError) -> Self {
        Self::new(error.kind.code(), error.message.clone())
    }
}
