//! `/sessions/{id}/data`: data of messages, such as pictures, which is stored beside the events.
//!
//! Any node answers, from the journal: the session is not opened.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{
    journal::Journal,
    message::{ContentBlock, DataId, DataSource, Message, SessionId, StoredData},
    session::data_id,
};
use mainstem_api::{Code, Endpoint};

use crate::{
    app::App,
    body::{Data, Path},
    caller::{Caller, Reader},
    prefix::Prefix,
    problem::Problem,
};

pub(crate) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(session): Path<String>,
    prefix: Prefix,
    data: Data,
) -> Result<Response, Problem> {
    let session: SessionId = session.parse()?;
    let stored = StoredData::new(data_id(&data.bytes), data.bytes.len() as u64);
    let journal = journal(&caller)?;
    let result = journal.store_data(&session, &stored.sha256, data.bytes.clone()).await;
    result.map_err(|error| app.unreadable(&error))?;
    let path = Endpoint::GetData.path(&[session.as_str(), stored.sha256.as_str()]);
    let mut response = (StatusCode::CREATED, Json(stored)).into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("{}{path}", prefix.0)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    reader: Reader,
    Path((session, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let caller = reader.of(&session)?;
    let (session, id): (SessionId, DataId) = (session.parse()?, id.parse()?);
    let found = journal(&caller)?.data(&session, &id).await.map_err(|error| app.unreadable(&error))?;
    let bytes = found.ok_or_else(|| Problem::not_found("data", id.as_str()))?;
    // Foreign bytes from the address of the page: a browser must not run them.
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "sandbox"),
        (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
    ];
    Ok((headers, bytes).into_response())
}

/// Checks that the data is stored to which an input refers.
///
/// # Errors
/// It is not, or the journal can't be read.
pub(crate) async fn check(
    app: &App,
    caller: &Caller,
    session: &SessionId,
    input: &Message,
) -> Result<(), Problem> {
    for (place, block) in input.content.iter().enumerate() {
        let ContentBlock::Data { source: DataSource::Stored(data), .. } = block else { continue };
        let found = journal(caller)?.data(session, &data.sha256).await;
        let found = found.map_err(|error| app.unreadable(&error))?;
        let pointer = format!("/input/content/{place}/source/stored");
        match found {
            None => return Err(Problem::misfit(&pointer, "the session has no data of this id")),
            Some(bytes) if bytes.len() as u64 != data.bytes => {
                let why = format!("the data has {} bytes, not {}", bytes.len(), data.bytes);
                return Err(Problem::misfit(&pointer, &why));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn journal(caller: &Caller) -> Result<&Arc<dyn Journal>, Problem> {
    let detail = "data is stored in a journal, and this server has none: `--journal` sets it";
    caller.harness.journal().ok_or_else(|| Problem::new(Code::NoData, detail))
}
