//! Errors that servers report, in all their shapes.
//!
//! * OpenAI, Azure, newer vLLM: `{"error": {"message", "type", "param", "code"}}`
//! * OpenAI in mid-response: `{"type": "error", "code", "message", "param"}`, the same in `error`,
//!   or `{"code", "message"}` there
//! * llama.cpp, OpenRouter: the same with a number as `code`, the HTTP status
//! * older vLLM, Mistral: `{"object": "error", "message", "type", "param", "code"}`; Mistral's
//!   message may be an object
//! * Anthropic: `{"type": "error", "error": {"type", "message"}}`
//! * Gemini: `{"error": {"code", "message", "status", "details"}}`, in an array or not; [details]
//!   say why, and how long to wait
//! * TGI, some of Ollama: `{"error": "…"}`
//! * FastAPI, gateways: `{"detail": …}`, `{"message": "…"}`, plain text, HTML
//!
//! [details]: https://google.aip.dev/193#error_model

use std::time::Duration;

use mainstem_model::{ErrorKind, ModelError};
use reqwest::StatusCode;
use serde_json::Value;

use crate::Server;

/// How many characters of a server's text a message quotes.
const QUOTED: usize = 200;

/// Phrases for a conversation that is too long, of servers without a code for it: OpenAI's likes,
/// vLLM, xAI, Ollama, Anthropic, Google.
const OVERFLOWS: [&str; 8] = [
    "maximum context length",
    "maximum model length",
    "maximum prompt length is",
    "context size",
    "exceeds the context length",
    "prompt is too long",
    "exceed context limit",
    "exceeds the maximum number of tokens allowed",
];

/// The same for a limit on the rate that is smaller than the request: it never fits. OpenAI sends
/// it with 429, Groq with 413.
const TOO_LARGE: &str = "Request too large for";

/// What Gemini says of a request with too many bytes, with 400.
const PAYLOAD_TOO_LARGE: &str = "Request payload size exceeds the limit";

/// What comes before the context window in those messages.
const WINDOWS: [&str; 5] = [
    "maximum context length is ",
    "maximum prompt length is ",
    "context size (",
    "maximum number of tokens allowed (",
    " > ",
];

/// An error that a server reports.
#[derive(Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerError {
    /// The HTTP status, of the response or in the error.
    pub status: Option<u16>,
    /// The message.
    pub message: String,
    /// `code`, `type` and `status`, in this order, then the reasons and quotas in Google's details.
    pub words: Vec<String>,
    /// The field of the request that it concerns.
    pub param: String,
    /// The time to wait, from Google's details. A header with it takes precedence.
    pub retry_after: Option<Duration>,
    /// The model's context window in tokens, of a conversation that is too long.
    pub context_window: Option<u64>,
}

impl ServerError {
    /// Parses the body of an error response, in any shape.
    pub fn of(status: u16, body: &str) -> Self {
        let said = serde_json::from_str(body).ok().and_then(|value| Self::read(&value));
        let said = said.unwrap_or_else(|| Self { message: excerpt(body), ..Self::default() });
        Self { status: Some(status), ..said }
    }

    /// Returns the error in a JSON value, if it is one.
    pub fn read(value: &Value) -> Option<Self> {
        let value = value.get(0).unwrap_or(value);
        let error = match value.get("error").filter(|error| !error.is_null()) {
            Some(error) => error,
            None if value.get("message").is_some() || value.get("detail").is_some() => value,
            None => return None,
        };
        let text = |name| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let details = || error.get("details").and_then(Value::as_array).into_iter().flatten();
        let words = ["code", "type", "status"].map(text).into_iter().filter(|word| !word.is_empty());
        let words = words.chain(details().flat_map(reasons));
        Some(Self {
            status: error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()),
            message: message(error),
            words: words.map(str::to_owned).collect(),
            param: text("param").to_owned(),
            retry_after: details().find_map(retry_delay),
            context_window: error.get("n_ctx").and_then(Value::as_u64),
        })
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        if self.is_overflow() {
            return ErrorKind::ContextOverflow;
        }
        if self.is_exhausted() {
            return ErrorKind::QuotaExceeded;
        }
        if self.words.iter().any(|word| word == "API_KEY_INVALID") {
            return ErrorKind::Auth;
        }
        let by_status =
            self.status.filter(|status| *status >= 400).map(|s| ModelError::from_status(s, "").kind());
        by_status.or_else(|| self.words.iter().find_map(|word| kind_of(word))).unwrap_or(ErrorKind::Server)
    }

    fn is_overflow(&self) -> bool {
        let by_word =
            |word: &String| matches!(&**word, "context_length_exceeded" | "exceed_context_size_error");
        let by_text = |text: &&str| self.message.contains(text);
        self.is_too_large()
            || self.words.iter().any(by_word)
            || matches!(self.status, Some(400 | 500)) && OVERFLOWS.iter().any(by_text)
            || matches!(self.status, Some(400 | 413 | 429)) && self.message.contains(TOO_LARGE)
    }

    /// Returns `true` if the request has too many bytes. Groq has the status for a limit on tokens.
    fn is_too_large(&self) -> bool {
        let by_status = self.status == Some(413) && !self.message.contains(TOO_LARGE);
        by_status
            || self.words.iter().any(|word| word == "request_too_large")
            || self.message.contains(PAYLOAD_TOO_LARGE)
    }

    /// Returns `true` if the service can't read an image or a document.
    fn is_about_data(&self) -> bool {
        self.words.iter().any(|word| IMAGE_ERRORS.contains(&&**word))
            || matches!(self.status, Some(400 | 404))
                && UNREADABLE.iter().any(|text| self.message.contains(text))
    }

    /// Returns `true` if a quota or credit is used up. Anthropic has no code for exhausted credit
    /// among its errors of status 400; a daily quota of Google's is not waited for.
    fn is_exhausted(&self) -> bool {
        let by_word = |word: &String| {
            matches!(&**word, "insufficient_quota" | "billing_error") || word.contains("PerDay")
        };
        self.words.iter().any(by_word)
            || self.status == Some(400) && self.message.contains("credit balance is too low")
    }

    /// Returns the failure of a call that got this status.
    pub(crate) fn refusal(&self, server: &Server, status: StatusCode) -> ModelError {
        // Some statuses of vendors, such as 529, have no name.
        let name = status.canonical_reason().map(|name| format!(" {name}")).unwrap_or_default();
        let mut what = format!("answered {}{name}", status.as_u16());
        if !self.message.is_empty() {
            what = format!("{what}: {}", server.quote(&self.message));
        }
        what.push_str(match self.kind() {
            ErrorKind::Auth => " (check the API key and its rights)",
            ErrorKind::QuotaExceeded => " (check plan and billing; waiting does not help)",
            ErrorKind::NotFound => " (check the model's name and the base URL)",
            _ if status.is_redirection() => {
                " (set the base URL to where it points; redirects are not followed)"
            }
            _ => "",
        });
        self.failure(server, &what)
    }

    /// Returns the failure of a call after a successful status.
    pub fn interruption(&self, server: &Server) -> ModelError {
        self.failure(server, &format!("broke off its answer: {}", server.quote(&self.message)))
    }

    fn failure(&self, server: &Server, what: &str) -> ModelError {
        let what = server.sentence(what);
        let (kind, status) = (self.kind(), self.status);
        let error = match status {
            Some(status) if status >= 400 => ModelError::new(kind, what).with_status(status),
            Some(_) => ModelError::new(ErrorKind::InvalidRequest, what),
            None => ModelError::new(kind, what),
        };
        let error = error.with_too_large(self.is_too_large()).with_about_data(self.is_about_data());
        let error = self.retry_after.into_iter().fold(error, ModelError::with_retry_after);
        let window = self.context_window.or_else(|| self.named_window()).filter(|_| self.is_overflow());
        window.into_iter().fold(error, ModelError::with_context_window)
    }

    /// Returns the context window that the message names.
    fn named_window(&self) -> Option<u64> {
        WINDOWS.iter().find_map(|before| {
            let (_, after) = self.message.rsplit_once(before)?;
            let digits = after.find(|c: char| !c.is_ascii_digit()).map_or(after, |end| &after[..end]);
            digits.parse().ok()
        })
    }
}

/// Returns the message, or the whole error if it has none. OpenRouter has its provider's own
/// message in the metadata.
fn message(error: &Value) -> String {
    let said = error.get("message").or_else(|| error.get("detail")).unwrap_or(error);
    let said = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    match error.pointer("/metadata/raw").and_then(Value::as_str) {
        Some(raw) => format!("{said}: {raw}"),
        None => said,
    }
}

/// Returns the reason in one of Google's details, [`ErrorInfo`], and the quotas in another,
/// [`QuotaFailure`].
///
/// [`ErrorInfo`]: https://google.aip.dev/193#errorinfo
/// [`QuotaFailure`]: https://docs.cloud.google.com/tasks/docs/reference/rpc/google.rpc#quotafailure
fn reasons(detail: &Value) -> impl Iterator<Item = &str> {
    let violations = detail.get("violations").and_then(Value::as_array).into_iter().flatten();
    detail
        .get("reason")
        .into_iter()
        .chain(violations.filter_map(|one| one.get("quotaId")))
        .filter_map(Value::as_str)
}

/// Returns the time in Google's [`RetryInfo`]: seconds with a fraction, and an `s`.
///
/// [`RetryInfo`]: https://docs.cloud.google.com/tasks/docs/reference/rpc/google.rpc#retryinfo
fn retry_delay(detail: &Value) -> Option<Duration> {
    let seconds: f64 = detail.get("retryDelay")?.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Codes of OpenAI's errors for images that can't be read.
const IMAGE_ERRORS: [&str; 12] = [
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "image_file_not_found",
];

/// What errors of status 400 and 404 say about data that can't be read: Anthropic's, Gemini's,
/// those of OpenAI without a code, OpenRouter's and llama.cpp's.
const UNREADABLE: [&str; 10] = [
    "Could not process image",
    "Could not process PDF",
    "The PDF specified was not valid",
    "image exceeds",
    "image dimensions exceed",
    "Unable to process input image",
    "unsupported image",
    "Failed to load image",
    "image_url is only supported by certain models",
    "support image input",
];

/// Returns the kind for a code or type, for errors without an HTTP status.
fn kind_of(word: &str) -> Option<ErrorKind> {
    Some(match word {
        "invalid_api_key" | "authentication_error" | "permission_error" | "PERMISSION_DENIED" => {
            ErrorKind::Auth
        }
        "rate_limit_exceeded" | "rate_limit_error" | "RESOURCE_EXHAUSTED" => ErrorKind::RateLimited,
        "overloaded" | "overloaded_error" | "service_unavailable" | "unavailable_error" | "UNAVAILABLE" => {
            ErrorKind::Overloaded
        }
        "invalid_request_error" | "BadRequestError" | "content_filter" | "INVALID_ARGUMENT" => {
            ErrorKind::InvalidRequest
        }
        // Errors of a failed response: the prompt, for its content or its owner, and its images.
        "invalid_prompt"
        | "data_residency_mismatch"
        | "bio_policy"
        | "misalignment_policy_violation"
        | "failed_to_download_image"
        | "image_content_policy_violation" => ErrorKind::InvalidRequest,
        word if IMAGE_ERRORS.contains(&word) => ErrorKind::InvalidRequest,
        "model_not_found" | "not_found_error" | "NotFoundError" | "NOT_FOUND" => ErrorKind::NotFound,
        "timeout" | "timeout_error" | "vector_store_timeout" | "DEADLINE_EXCEEDED" => ErrorKind::Timeout,
        _ => return None,
    })
}

/// Returns the beginning of a text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1).flat_map(str::chars);
    let mut excerpt: String = words.by_ref().take(QUOTED).collect();
    if words.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests;
