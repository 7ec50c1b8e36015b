//! An event stream that reconnects.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use mainstem_api::{Code, Endpoint, Error, EventQuery, Events, Problem, StreamForm};
use mainstem_event::{AgentEvent, Clock, SystemClock};
use mainstem_message::SessionId;
use memchr::memmem;
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use tokio::time::sleep;

use crate::{
    connection::{Connection, INTERVAL, RETRIES, Request},
    lines::Lines,
};

/// The longest wait that a server can ask for before it is asked again.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The key of the mark of an event that a server has cut.
const TRUNCATED: &[u8] = b"\"truncated\"";

/// What a reader gets in the place of events that the server no longer stores.
const DELETED: &str = "these events are no longer stored";

/// Events of a session on a server, each once. After a lost connection it continues behind the last
/// event.
pub(crate) struct Reader {
    connection: Connection,
    session: SessionId,
    query: EventQuery,
    /// The number of the last event that was returned.
    last: u64,
    lines: Option<Lines>,
    /// Whether the present response has sent an event.
    has_event: bool,
    /// Attempts since the last event.
    attempts: u32,
    /// Stands for events that the server no longer stores.
    gap: Option<AgentEvent>,
}

/// The fields of an event that a server never cuts, and the mark of one that it has cut.
#[derive(Deserialize)]
struct Envelope {
    seq: u64,
    truncated: Option<serde::de::IgnoredAny>,
}

/// What came of connecting.
enum Connected {
    Yes,
    /// There are no further events.
    Over,
}

impl Reader {
    pub(crate) fn new(connection: Connection, session: SessionId, query: EventQuery) -> Self {
        let last = query.after.unwrap_or(0);
        let (lines, has_event, attempts, gap) = Default::default();
        Self { connection, session, query, last, lines, has_event, attempts, gap }
    }

    pub(crate) fn into_stream(self) -> Events {
        let next = |mut reader: Self| async { Ok(reader.next().await?.map(|event| (event, reader))) };
        stream::try_unfold(self, next).boxed()
    }

    /// Returns the next event; `None` if there are no further ones. Dropping the wait loses
    /// nothing.
    async fn next(&mut self) -> Result<Option<AgentEvent>, Error> {
        loop {
            if let Some(gap) = self.gap.take() {
                self.last = gap.seq;
                return Ok(Some(gap));
            }
            let Some(lines) = &mut self.lines else {
                match self.connect().await? {
                    Connected::Yes => continue,
                    Connected::Over => return Ok(None),
                }
            };
            let Some(line) = lines.next(&self.connection).await? else {
                // The next response tells whether there are further events.
                self.disconnected().await?;
                continue;
            };
            let event = whole(&self.connection, &self.session, self.last, line).await?;
            if event.seq <= self.last {
                let reason = format!("event {} came after event {}", event.seq, self.last);
                return Err(self.connection.invalid(reason));
            }
            (self.last, self.attempts, self.has_event) = (event.seq, 0, true);
            // Only now: the wait for the whole event can be dropped.
            lines.remove();
            return Ok(Some(event));
        }
    }

    /// Waits before it connects again if the response had no event: a server that ends each at once
    /// is not asked without a pause.
    async fn disconnected(&mut self) -> Result<(), Error> {
        let was_empty = !self.has_event;
        (self.lines, self.has_event) = (None, false);
        if was_empty {
            let reason = "it ends each stream of events before it sends one".to_owned();
            self.again(self.connection.invalid(reason), INTERVAL).await?;
        }
        Ok(())
    }

    async fn connect(&mut self) -> Result<Connected, Error> {
        let path = [self.session.as_str()];
        let request = Request { endpoint: Endpoint::GetEvents, path: &path };
        let request =
            self.connection.request(&request).query(&EventQuery { after: None, ..self.query.clone() });
        let request =
            request.header("accept", StreamForm::Ndjson.media_type()).header("last-event-id", self.last);
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return self.again(self.connection.unreachable(&error), INTERVAL).await,
        };
        match response.status() {
            StatusCode::NO_CONTENT => Ok(Connected::Over),
            StatusCode::GONE => self.skip(response).await,
            _ => match self.connection.checked(response).await {
                Ok(response) => {
                    self.lines = Some(Lines::of(response));
                    Ok(Connected::Yes)
                }
                Err(error) if error.is_retryable() => {
                    let wait = wait(&error);
                    self.again(error, wait).await
                }
                Err(error) => Err(error),
            },
        }
    }

    /// Waits before the next attempt; fails with this error if there were too many.
    async fn again(&mut self, error: Error, wait: Duration) -> Result<Connected, Error> {
        if self.attempts == RETRIES {
            return Err(error);
        }
        self.attempts += 1;
        sleep(wait).await;
        Ok(Connected::Yes)
    }

    /// Continues with the oldest event that is stored, and reports the others as missed.
    async fn skip(&mut self, response: Response) -> Result<Connected, Error> {
        let body = self.connection.body(response).await?;
        let problem =
            serde_json::from_slice::<Problem>(&body).unwrap_or_else(|_| Problem::new(Code::Gone, "gone"));
        let oldest = problem.more.get("oldest_seq").and_then(|oldest| oldest.as_u64());
        let Some(oldest) = oldest.filter(|oldest| *oldest > self.last.saturating_add(1)) else {
            return Err(Error::refused(self.connection.shown.to_string(), problem));
        };
        let (missed, now) = (self.last + 1..=oldest - 1, SystemClock.now());
        self.gap = Some(AgentEvent::unreadable(self.session.clone(), missed, now, DELETED));
        Ok(Connected::Yes)
    }
}

/// Returns the event of a line; one that the server has cut is fetched. `last` is the event before
/// it.
async fn whole(
    connection: &Connection,
    session: &SessionId,
    last: u64,
    line: &[u8],
) -> Result<AgentEvent, Error> {
    let wrong = |error| connection.invalid(format!("the line after event {last} is not an event: {error}"));
    // Most events are whole, so the mark is looked for before the line is parsed.
    if memmem::find(line, TRUNCATED).is_none() {
        return serde_json::from_slice(line).map_err(wrong);
    }
    let envelope: Envelope = serde_json::from_slice(line).map_err(wrong)?;
    if envelope.truncated.is_none() {
        return serde_json::from_slice(line).map_err(wrong);
    }
    let seq = envelope.seq.to_string();
    let event: AgentEvent = connection.get(Endpoint::GetEvent, &[session.as_str(), &seq], ()).await?;
    if event.seq == envelope.seq {
        return Ok(event);
    }
    Err(connection.invalid(format!("the response for event {seq} has event {}", event.seq)))
}

/// Returns how long an overloaded server asks to wait.
fn wait(error: &Error) -> Duration {
    error.retry_after().unwrap_or(INTERVAL).min(MAX_WAIT)
}
