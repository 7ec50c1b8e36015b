//! `/sessions/{id}/data`: data of messages, such as pictures, which is stored beside the events.
//!
//! Any node answers, from the journal: the session is not opened.

use std::sync::Arc;

use axum::{
    Json,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, stream};
use mainstem::{
    journal::{Journal, JournalError},
    message::{ContentBlock, DataId, DataSource, Message, SessionId, StoredData},
    session::data_id,
};
use mainstem_api::{Code, Endpoint, MAX_DATA};

use crate::{
    app::App,
    body::{Data, Path},
    caller::{Caller, Reader, VARY},
    prefix::Prefix,
    problem::Problem,
};

/// How many bytes are read from the journal at once.
const PART: u64 = 256 << 10;

/// The limit of references to data in an input.
pub(crate) const MAX_REFERENCES: usize = 64;

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
    let is_stored = journal.store_data(&session, &stored.sha256, data.bytes.clone()).await;
    if !is_stored.map_err(|error| app.unreadable(&error))? {
        let detail = "you have sent much data of sessions that have not begun; begin some of them first";
        return Err(Problem::new(Code::TooMuchData, detail));
    }
    let path = Endpoint::GetData.path(&[session.as_str(), stored.sha256.as_str()]);
    let mut response = (StatusCode::CREATED, Json(stored)).into_response();
    prefix.set_location(&mut response, &path);
    Ok(response)
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    reader: Reader,
    Path((session, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let caller = reader.of(&session)?;
    let (session, id): (SessionId, DataId) = (session.parse()?, id.parse()?);
    let journal = journal(&caller)?.clone();
    let size = journal.data_size(&session, &id).await.map_err(|error| app.unreadable(&error))?;
    let size = size.ok_or_else(|| Problem::not_found("data", id.as_str()))?;
    // A browser must not run these bytes: they come from the address of the page.
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable")),
        (header::CONTENT_LENGTH, size.into()),
        VARY,
    ];
    Ok((headers, Body::from_stream(parts(journal, session, id, size))).into_response())
}

/// Returns data in parts, which are read from the journal when the reader is ready for them.
fn parts(
    journal: Arc<dyn Journal>,
    session: SessionId,
    id: DataId,
    size: u64,
) -> impl Stream<Item = Result<Bytes, JournalError>> {
    stream::try_unfold((journal, 0), move |(journal, from)| {
        let (session, id) = (session.clone(), id.clone());
        async move {
            if from >= size {
                return Ok(None);
            }
            let part = journal.data(&session, &id, from..from + PART).await?;
            // The session was deleted meanwhile: the body ends before its announced length.
            let part = part.filter(|part| !part.is_empty());
            Ok(part.map(|part| (part.clone(), (journal, from + part.len() as u64))))
        }
    })
}

/// Returns `true` if an input refers to stored data.
pub(crate) fn has_references(input: &Message) -> bool {
    references(input).next().is_some()
}

fn references(input: &Message) -> impl Iterator<Item = (usize, &StoredData)> {
    input.content.iter().enumerate().filter_map(|(place, block)| match block {
        ContentBlock::Data { source: DataSource::Stored(data), .. } => Some((place, data)),
        _ => None,
    })
}

/// Checks the data to which an input refers.
///
/// # Errors
/// It is not stored or too large in all, or the journal can't be read.
pub(crate) async fn check(
    app: &App,
    caller: &Caller,
    session: &SessionId,
    input: &Message,
) -> Result<(), Problem> {
    let mut sum = 0;
    for (count, (place, data)) in references(input).enumerate() {
        let misfit = |why: &str| Problem::misfit(&format!("/input/content/{place}/source/stored"), why);
        if count == MAX_REFERENCES {
            return Err(misfit(&format!("an input refers to data {MAX_REFERENCES} times at most")));
        }
        let size = journal(caller)?.data_size(session, &data.sha256).await;
        let size = size.map_err(|error| app.unreadable(&error))?;
        let size = size.ok_or_else(|| misfit("the session has no data of this id"))?;
        if size != data.bytes {
            return Err(misfit(&format!("the data has {size} bytes, not {}", data.bytes)));
        }
        sum += size;
        if sum > MAX_DATA as u64 {
            return Err(misfit(&format!("the data of an input has more than {MAX_DATA} bytes")));
        }
    }
    Ok(())
}

fn journal(caller: &Caller) -> Result<&Arc<dyn Journal>, Problem> {
    let detail = "data is stored in a journal, and this server has none: `--journal` sets it";
    caller.harness.journal().ok_or_else(|| Problem::new(Code::NoData, detail))
}
