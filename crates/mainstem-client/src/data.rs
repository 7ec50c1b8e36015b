//! Sends large data of messages in requests of its own: the body of a run has a limit.

use base64::{Engine, prelude::BASE64_STANDARD};
use mainstem_api::{Code, Endpoint, Error, Input, MAX_DATA, NewRun, Problem};
use mainstem_message::{ContentBlock, DataSource, StoredData};

use crate::{RemoteSession, connection::Retry};

/// The size, in base64 digits, from which data is sent in a request of its own.
const MIN: usize = 64 << 10;

/// The size of all smaller data that stays in a message, in base64 digits.
const MAX: usize = 256 << 10;

/// The codes of a server that does not store data: it has no journal, or is of an earlier version.
const UNSUPPORTED: [Code; 3] = [Code::NoData, Code::NoSuchPath, Code::MethodNotAllowed];

impl RemoteSession {
    /// Stores data, to which the messages of this session's runs then refer, such as a picture.
    /// [`run`](mainstem_api::AnySession::run) does this with large data of its input.
    ///
    /// # Errors
    /// The server can't be reached, has no journal ([`NoData`](Code::NoData)), or the
    /// data is too large ([`BodyTooLarge`](Code::BodyTooLarge)).
    pub async fn store_data(&self, bytes: Vec<u8>) -> Result<StoredData, Error> {
        // A server that refuses the data closes the connection before the answer can be read.
        if bytes.len() > MAX_DATA {
            let detail = format!("the data has {} bytes; {MAX_DATA} is the limit", bytes.len());
            return Err(Problem::new(Code::BodyTooLarge, detail).into());
        }
        let request = self.post(Endpoint::StoreData, &[]);
        let request = request.header("content-type", "application/octet-stream").body(bytes);
        self.server.0.post(request, Retry::Unreachable).await
    }

    /// Stores the large data of a run's input. Returns the run with references to it.
    pub(crate) async fn with_stored_data(&self, mut run: NewRun) -> Result<NewRun, Error> {
        let Some(Input(message)) = &mut run.input else { return Ok(run) };
        let mut left = MAX;
        for block in &mut message.content {
            let ContentBlock::Data { source, .. } = block else { continue };
            let DataSource::Base64(digits) = &*source else { continue };
            if digits.len() < MIN && digits.len() <= left {
                left -= digits.len();
                continue;
            }
            // The server refuses invalid base64.
            let Ok(bytes) = BASE64_STANDARD.decode(digits) else { continue };
            match self.store_data(bytes).await {
                Ok(data) => *source = DataSource::Stored(data),
                Err(error) if UNSUPPORTED.iter().any(|code| error.has_code(code)) => return Ok(run),
                Err(error) => return Err(error),
            }
        }
        Ok(run)
    }
}
