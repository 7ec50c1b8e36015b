//! From a request to the beginning of an answer.

use std::sync::Arc;

use mainstem_http::{Answer, ask, begin};
use mainstem_model::{Model, ModelError, ModelRequest};
use serde_json::Value;

use crate::{Ollama, decoder::CHAT, host::is_cloud, request};

/// Asks; a refusal comes with the command that helps, if there is one.
pub(crate) async fn open(model: Ollama, request: ModelRequest) -> Result<Answer, ModelError> {
    let body = request::body(&model, &request)?;
    match ask(&model.http, &model.server, body).await? {
        Ok(response) => begin(&model.server, response, whole(&request), &CHAT).await,
        Err(mut refusal) => {
            if let Some(advice) = advice(&model, refusal.status, &refusal.complaint.message) {
                refusal.complaint.message.push_str(&advice);
            }
            Err(refusal.into_error(&model.server))
        }
    }
}

/// Why the answer comes in one piece, if the caller asks for that.
fn whole(request: &ModelRequest) -> Option<Arc<str>> {
    let streams = request.options.extra.get("stream");
    (streams == Some(&Value::Bool(false))).then(|| "`stream` is set to false".into())
}

/// What only the Ollama on a machine can be helped with.
fn advice(model: &Ollama, status: u16, said: &str) -> Option<String> {
    match status {
        _ if is_cloud(&model.server) => None,
        // `model 'qwen3' not found`; a wrong path is `404 page not found`.
        404 if said.starts_with("model ") => Some(format!("; run `ollama pull {}`", model.name())),
        // It runs models in the cloud for whoever is signed in.
        401 if !model.server.has_key() => Some("; run `ollama signin`".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
