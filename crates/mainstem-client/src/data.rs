//! Data of messages, which is sent on its own: a body has a limit.

use base64::{Engine, prelude::BASE64_STANDARD};
use mainstem_api::{Code, Endpoint, Error, Input, MAX_DATA, NewRun, Problem};
use mainstem_message::{ContentBlock, DataSource, StoredData};

use crate::{RemoteSession, connection::Retry};

/// How many base64 digits data has at least that is sent on its own.
const MIN: usize = 64 << 10;

/// How many base64 digits of smaller data stay in a message; further data is sent on its own.
const MAX: usize = 256 << 10;

/// What a server answers that stores no data.
const WITHOUT: [Code; 3] = [Code::NoData, Code::NoSuchPath, Code::MethodNotAllowed];

impl RemoteSession {
    /// Stores data, to which the messages of this session's runs then refer, such as a picture.
    /// [`run`](mainstem_api::AnySession::run) does this with large data of its input.
    ///
    /// # Errors
    /// The server can't be reached, has no journal ([`NoData`](Code::NoData)), or takes no data
    /// that is as large.
    pub async fn store_data(&self, bytes: Vec<u8>) -> Result<StoredData, Error> {
        // A server refuses it while it is sent, and the connection is closed before the answer.
        if bytes.len() > MAX_DATA {
            let detail = format!("the data has {} bytes; {MAX_DATA} is the limit", bytes.len());
            return Err(Problem::new(Code::BodyTooLarge, detail).into());
        }
        let request = self.post(Endpoint::StoreData, &[]);
        let request = request.header("content-type", "application/octet-stream").body(bytes);
        self.server.0.post(request, Retry::Unreachable).await
    }

    /// Sends the large data of a run's input on its own. Returns the run with references to it.
    pub(crate) async fn with_stored_data(&self, mut run: NewRun) -> Result<NewRun, Error> {
        let Some(Input(message)) = &mut run.input else { return Ok(run) };
        let mut left = MAX;
        for block in &mut message.content {
            let ContentBlock::Data { source, .. } = block else { continue };
            let DataSource::Base64(digits) = &*source else { continue };
            // What is not base64 is for the server to refuse.
            if digits.len() < MIN && digits.len() <= left {
                left -= digits.len();
                continue;
            }
            let Ok(bytes) = BASE64_STANDARD.decode(digits) else { continue };
            match self.store_data(bytes).await {
                Ok(data) => *source = DataSource::Stored(data),
                // The server has no journal, or is of an earlier version.
                Err(error) if WITHOUT.iter().any(|code| error.has_code(code)) => return Ok(run),
                Err(error) => return Err(error),
            }
        }
        Ok(run)
    }
}
