//! What a server says went wrong, in the shapes that servers have for it.
//!
//! | who | shape |
//! |---|---|
//! | OpenAI, Azure, newer vLLM | `{"error": {"message", "type", "param", "code"}}` |
//! | llama.cpp, OpenRouter | the same with a number as `code`, the HTTP status |
//! | older vLLM, Mistral | `{"object": "error", "message", "type", "param", "code"}`; Mistral's message may be an object |
//! | Anthropic | `{"type": "error", "error": {"type", "message"}}` |
//! | Gemini | `[{"error": {"code", "message", "status"}}]` |
//! | TGI, some of Ollama | `{"error": "…"}` |
//! | FastAPI, gateways | `{"detail": …}`, `{"message": "…"}`, plain text, HTML |

use mainstem_model::{ErrorKind, ModelError};
use reqwest::StatusCode;
use serde_json::Value;

use crate::Server;

/// How much of a server's text a message quotes, in characters.
const QUOTED: usize = 200;

/// What a server says went wrong.
#[derive(Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Complaint {
    /// Of the response, or named in the complaint.
    pub status: Option<u16>,
    /// The sentence.
    pub message: String,
    /// `code`, `type` and `status`, in this order.
    pub words: Vec<String>,
    /// The field of the request that it is about.
    pub param: String,
}

impl Complaint {
    /// What the body of a refused request says, whatever it is.
    pub fn of(status: u16, body: &str) -> Self {
        let said = serde_json::from_str(body).ok().and_then(|value| Self::read(&value));
        let said = said.unwrap_or_else(|| Self { message: excerpt(body), ..Self::default() });
        Self { status: Some(status), ..said }
    }

    /// The complaint in a piece of JSON, if it is one.
    pub fn read(value: &Value) -> Option<Self> {
        let value = value.get(0).unwrap_or(value);
        let error = match value.get("error").filter(|error| !error.is_null()) {
            Some(error) => error,
            None if value.get("message").is_some() || value.get("detail").is_some() => value,
            None => return None,
        };
        let text = |name| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let words = ["code", "type", "status"].map(text).into_iter().filter(|word| !word.is_empty());
        Some(Self {
            status: error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()),
            message: message(error),
            words: words.map(str::to_owned).collect(),
            param: text("param").to_owned(),
        })
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        if self.is_overflow() {
            return ErrorKind::ContextOverflow;
        }
        if self.words.iter().any(|word| word == "insufficient_quota") {
            return ErrorKind::QuotaExceeded;
        }
        let by_status =
            self.status.filter(|status| *status >= 400).map(|s| ModelError::from_status(s, "").kind());
        by_status.or_else(|| self.words.iter().find_map(|word| kind_of(word))).unwrap_or(ErrorKind::Server)
    }

    fn is_overflow(&self) -> bool {
        let by_word =
            |word: &String| matches!(&**word, "context_length_exceeded" | "exceed_context_size_error");
        let by_text = |text: &&str| self.message.contains(text);
        // OpenAI and vLLM, llama.cpp, Ollama.
        let texts = ["maximum context length", "context size", "exceeds the context length"];
        self.words.iter().any(by_word) || self.status == Some(400) && texts.iter().any(by_text)
    }

    /// The failure of a call that was refused with this status.
    pub fn refusal(&self, server: &Server, status: StatusCode) -> ModelError {
        let mut what = format!("answered {status}");
        if !self.message.is_empty() {
            what = format!("{what}: {}", excerpt(&self.message));
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

    /// The failure of a call that had been accepted.
    pub fn interruption(&self, server: &Server) -> ModelError {
        self.failure(server, &format!("broke off its answer: {}", excerpt(&self.message)))
    }

    fn failure(&self, server: &Server, what: &str) -> ModelError {
        let what = server.sentence(what);
        let (kind, status) = (self.kind(), self.status);
        match status {
            Some(status) if status >= 400 => ModelError::new(kind, what).with_status(status),
            Some(_) => ModelError::new(ErrorKind::InvalidRequest, what),
            None => ModelError::new(kind, what),
        }
    }
}

/// The sentence, or the complaint itself where it has none. OpenRouter hides its provider's own words in the metadata.
fn message(error: &Value) -> String {
    let said = error.get("message").or_else(|| error.get("detail")).unwrap_or(error);
    let said = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    match error.pointer("/metadata/raw").and_then(Value::as_str) {
        Some(raw) => format!("{said}: {raw}"),
        None => said,
    }
}

/// The words that servers use for codes and types, where no HTTP status tells.
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
        "model_not_found" | "not_found_error" | "NotFoundError" | "NOT_FOUND" => ErrorKind::NotFound,
        "timeout" | "DEADLINE_EXCEEDED" => ErrorKind::Timeout,
        _ => return None,
    })
}

/// The beginning of a text, on one line.
pub fn excerpt(text: &str) -> String {
    let mut words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1).flat_map(str::chars);
    let mut excerpt: String = words.by_ref().take(QUOTED).collect();
    if words.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests;
