//! From a request to the beginning of an answer.

use std::sync::Arc;

use mainstem_model::{ErrorKind, ModelError, ModelRequest};
use mainstem_sse::{DEFAULT_LIMIT, SseStream};
use reqwest::{Response, header::CONTENT_TYPE};

use crate::{
    OpenAi,
    complaint::{Complaint, excerpt},
    dialect::Dialect,
    request,
    retry_after::retry_after,
    server::Server,
    transport::{self, Body},
};

/// How much of a refusal is read.
const REFUSAL_LIMIT: usize = 64 << 10;

/// An answer that has begun.
pub(crate) enum Answer {
    Events(SseStream<Body>),
    Whole { body: String, reason: Arc<str> },
}

/// Asks, and asks again in the server's dialect where its refusal teaches one.
pub(crate) async fn open(model: OpenAi, request: ModelRequest) -> Result<Answer, ModelError> {
    let mut dialect = model.dialect();
    loop {
        let body = request::body(&model, &request, &dialect)?;
        let response = model.http.post(&model.server, body).await?;
        if response.status().is_success() {
            return begin(&model.server, &dialect, response).await;
        }
        let (status, wait) = (response.status(), retry_after(response.headers()));
        let complaint = Complaint::of(status.as_u16(), &beginning(&model.server, response).await);
        let Some(heeding) = dialect.heeding(&complaint) else {
            let refusal = complaint.refusal(&model.server, status);
            return Err(wait.into_iter().fold(refusal, ModelError::with_retry_after));
        };
        model.learn(&heeding);
        dialect = heeding;
    }
}

/// The content type decides how the answer is read; a server that names none is taken at its word that it streams.
async fn begin(server: &Server, dialect: &Dialect, response: Response) -> Result<Answer, ModelError> {
    let named =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match &*media_type {
        "text/event-stream" | "" => Ok(Answer::Events(SseStream::new(Box::pin(response.bytes_stream())))),
        "application/json" => {
            let unasked =
                || format!("{} answered in one piece although asked to stream", server.host()).into();
            let reason = dialect.whole.clone().unwrap_or_else(unasked);
            Ok(Answer::Whole { body: whole(server, response).await?, reason })
        }
        _ => {
            let text = excerpt(&beginning(server, response).await);
            let what = format!(
                "answered with {media_type}, which is no chat completion (check the base URL): {text}"
            );
            Err(server.error(ErrorKind::Protocol, &what))
        }
    }
}

async fn whole(server: &Server, mut response: Response) -> Result<String, ModelError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| transport::failure(server, error))? {
        body.extend_from_slice(&bytes);
        if body.len() > DEFAULT_LIMIT {
            return Err(
                server.error(ErrorKind::Protocol, &format!("answered with more than {DEFAULT_LIMIT} bytes"))
            );
        }
    }
    String::from_utf8(body)
        .map_err(|_| server.error(ErrorKind::Protocol, "answered with bytes that are not UTF-8"))
}

/// The beginning of a body that only explains a failure: as much as comes, and is reasonable.
async fn beginning(server: &Server, mut response: Response) -> String {
    let mut body = Vec::new();
    while body.len() < REFUSAL_LIMIT
        && let Ok(Some(bytes)) = response.chunk().await
    {
        body.extend_from_slice(&bytes);
    }
    server.redact(String::from_utf8_lossy(&body).into_owned())
}
