//! MCP's streamable HTTP at `/mcp`: agents as tools.

use std::sync::Arc;

use async_trait::async_trait;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http,
    response::Response,
};
use futures_util::StreamExt;
use mainstem::{
    HarnessAgents,
    api::{AnyRun, AnySession, Begun, Error, EventQuery, NewRun},
    event::{Ids, RandomIds},
    mcp::{AgentHost, AgentServer, OfferedAgent},
};

use tokio_util::sync::CancellationToken;

use super::post_with_body;
use crate::{
    app::App,
    body::{ReadBody, read},
    caller::Caller,
    problem::Problem,
    runs::{BegunRun, NewRunOf},
};

/// Returns the route.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route("/mcp", post_with_body(handle))
}

async fn handle(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Response> {
    let ReadBody { parts, bytes, share } = read(request, &app).await?;
    caller.release_permit();
    let server = AgentServer::new(Agents { app, caller });
    // A call ends with its run, which goes on when the server stops.
    let unstopped = CancellationToken::new();
    let response = server.handle(http::Request::from_parts(parts, bytes), unstopped).await;
    drop(share);
    Ok(response.map(Body::from_stream))
}

/// The agents that a caller can run.
struct Agents {
    app: Arc<App>,
    caller: Caller,
}

#[async_trait]
impl AgentHost for Agents {
    fn agents(&self) -> Vec<OfferedAgent> {
        let all = HarnessAgents::new(self.caller.harness.clone());
        let own = self.caller.harness.agents().root().id().to_string();
        all.with_only(self.app.served.agents.iter().cloned().chain([own])).agents()
    }

    async fn begin(&self, session: Option<&str>, run: NewRun) -> Result<(Arc<dyn AnySession>, Begun), Error> {
        let id = session.map_or_else(|| RandomIds.next("mcp-"), str::to_owned);
        let request = NewRunOf { session: &id, run, key: None, is_read: true };
        let begun = request.begin(&self.app, &self.caller).await.map_err(Problem::into_error)?;
        let BegunRun { run: found, reader, .. } = begun;
        let session = found.session().clone();
        let query = EventQuery::after(found.first().saturating_sub(1)).with_run(found.id());
        // The reader counts until its events are dropped.
        let events = AnySession::events(&session, query).inspect(move |_| _ = &reader);
        let run: Arc<dyn AnyRun> = match found.handle() {
            Some(run) => Arc::new(run.clone()),
            None => return Err(Problem::not_found("run", found.id().as_str()).into_error()),
        };
        Ok((Arc::new(session), Begun { run, events: events.boxed() }))
    }
}
