//! The active sessions of a server, on one stream.

use std::pin::Pin;

use futures_util::{Stream, StreamExt, stream};
use mainstem_api::{Endpoint, Error, LiveFrame, LiveQuery, StreamForm};

use crate::{
    Server,
    connection::{Connection, Request},
    lines::Lines,
};

/// The frames of the active sessions. The stream has no end: a lost connection is its last item, an
/// error. Dropping a wait for the next frame loses nothing.
pub type LiveFrames = Pin<Box<dyn Stream<Item = Result<LiveFrame, Error>> + Send>>;

impl Server {
    /// Streams what all active sessions of the caller do. A reader that connects again, after an
    /// error, forgets what the earlier stream had: the new one begins with every session that is
    /// active.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    /// use mainstem_api::{LiveFrame, LiveQuery};
    /// use mainstem_client::Server;
    ///
    /// # async fn example() -> Result<(), mainstem_api::Error> {
    /// let server = Server::at("http://127.0.0.1:7878")?.with_token("the token");
    /// let mut frames = server.live(LiveQuery::default()).await?;
    /// while let Some(frame) = frames.try_next().await? {
    ///     if let LiveFrame::Session { session, fleet, .. } = frame {
    ///         println!("{}: {} agents", session.id, fleet.agents.len());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server can't be reached, or refuses the request: all tenants are for the operator's
    /// token.
    pub async fn live(&self, query: LiveQuery) -> Result<LiveFrames, Error> {
        let request = self.0.request(&Request { endpoint: Endpoint::Live, path: &[] }).query(&query);
        let request = request.header("accept", StreamForm::Ndjson.media_type());
        let response = request.send().await.map_err(|error| self.0.unreachable(&error))?;
        let lines = Lines::of(self.0.checked(response).await?);
        let frames = stream::unfold((self.0.clone(), Some(lines)), |(connection, lines)| async move {
            let mut lines = lines?;
            let frame = next(&connection, &mut lines).await;
            let lines = frame.is_ok().then_some(lines);
            Some((frame, (connection, lines)))
        });
        Ok(frames.boxed())
    }
}

async fn next(connection: &Connection, lines: &mut Lines) -> Result<LiveFrame, Error> {
    let line = lines.next(connection).await?.ok_or_else(|| connection.lost("the stream was cut"))?;
    let wrong = |error| connection.invalid(format!("a line of the stream is not a frame: {error}"));
    let frame = serde_json::from_slice(line).map_err(wrong)?;
    lines.remove();
    Ok(frame)
}
