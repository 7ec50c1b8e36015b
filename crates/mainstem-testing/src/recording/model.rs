//! A model that gives the recorded answers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{StreamExt, future, stream};
use mainstem_message::Failure;
use mainstem_model::{ErrorKind, Model, ModelError, ModelRequest, ModelStream};

use super::{
    schedule::Stage,
    script::{Answer, Ending, ROOT, Script},
};

/// Gives each instance its recorded answers, one after the other.
pub(super) struct RecordedModel {
    script: Arc<Script>,
    stage: Stage,
    /// How many answers each instance has got.
    given: Mutex<HashMap<Arc<str>, usize>>,
}

impl RecordedModel {
    pub(super) fn new(script: Arc<Script>, stage: Stage) -> Self {
        Self { script, stage, given: Mutex::default() }
    }

    fn next(&self, request: &ModelRequest) -> Result<Answer, ModelError> {
        let key = if request.agent_key.is_empty() { ROOT.into() } else { request.agent_key.clone() };
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let given = given.entry(key.clone()).or_default();
        let answers = self.script.answers.get(&*key).map_or(&[][..], Vec::as_slice);
        // The cancel came before the instance could ask; now it comes a moment later.
        let none = self.script.cancelled.contains(&*key).then(Answer::cancelled);
        let answer = answers.get(*given).cloned().or(none).ok_or_else(|| {
            let count = answers.len();
            let message = format!("the recording has {count} answers for {key}, and it asks for one more");
            ModelError::new(ErrorKind::InvalidRequest, message)
        })?;
        *given += 1;
        Ok(answer)
    }
}

impl Model for RecordedModel {
    fn name(&self) -> &str {
        "recorded"
    }

    fn provider(&self) -> Option<&str> {
        Some("recorded")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        match self.next(&request) {
            Ok(answer) => play(answer, self.stage.clone()),
            Err(error) => Box::pin(stream::iter([Err(error)])),
        }
    }
}

fn play(Answer { pieces, ending }: Answer, stage: Stage) -> ModelStream {
    let ends = stage.clone();
    let pieces = stream::iter(pieces).then(move |(time, delta)| {
        let stage = stage.clone();
        async move {
            stage.until(time).await;
            Ok(delta)
        }
    });
    let ending = stream::once(async move {
        match ending {
            Ending::Complete => None,
            Ending::Failed(time, failure) => {
                ends.until(time).await;
                Some(Err(error(failure)))
            }
            Ending::Cancelled => future::pending().await,
        }
    });
    Box::pin(pieces.chain(ending.filter_map(future::ready)))
}

/// Returns the error of a call that failed like this; panics if it was a panic.
fn error(failure: Option<Failure>) -> ModelError {
    let Failure { code, message, .. } =
        failure.unwrap_or_else(|| Failure::new("invalid_request", "the recorded call failed"));
    if code == "panic" {
        // As the model did, but without a report of the panic hook.
        let said = message.split_once(": ").map_or("", |(_, said)| said);
        std::panic::resume_unwind(Box::new(said.to_owned()));
    }
    let kind = match code.as_str() {
        "auth" => ErrorKind::Auth,
        "rate_limited" => ErrorKind::RateLimited,
        "quota_exceeded" => ErrorKind::QuotaExceeded,
        "overloaded" => ErrorKind::Overloaded,
        "server_error" => ErrorKind::Server,
        "context_overflow" => ErrorKind::ContextOverflow,
        "not_found" => ErrorKind::NotFound,
        "timeout" => ErrorKind::Timeout,
        "transport" => ErrorKind::Transport,
        "protocol" => ErrorKind::Protocol,
        "unsupported" => ErrorKind::Unsupported,
        _ => ErrorKind::InvalidRequest,
    };
    ModelError::new(kind, message)
}
