//! The routes: a handler for each endpoint.

use std::sync::{Arc, LazyLock};

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, Request},
    handler::Handler,
    http::header,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, on},
};
use mainstem_api::{Code, Endpoint, MAX_DATA, Method};
use serde_json::Value;

#[cfg(feature = "page")]
use crate::page;
use crate::{
    agents, app::App, body::MAX_UNKNOWN, caller::TakesBody, catalog, data, events, jobs, links, live, login,
    metrics, packed::packed, prefix::Prefix, problem::Problem, runs, server, sessions, tasks,
};

/// Returns all routes.
pub(crate) fn routes() -> Router<Arc<App>> {
    #[cfg(feature = "page")]
    let router = page::routes();
    #[cfg(not(feature = "page"))]
    let router = Router::new();
    Endpoint::ALL.iter().fold(router, |router, endpoint| {
        router.route(endpoint.operation().path(), limited(*endpoint, handler(*endpoint)))
    })
}

fn handler(endpoint: Endpoint) -> MethodRouter<Arc<App>> {
    match endpoint {
        Endpoint::ListSessions => route(endpoint, sessions::list),
        Endpoint::GetSession => route(endpoint, sessions::get),
        Endpoint::DeleteSession => route(endpoint, sessions::delete),
        Endpoint::ListRuns => route(endpoint, runs::list),
        Endpoint::BeginRun => route(endpoint, runs::post),
        Endpoint::GetEvents => route(endpoint, events::get),
        Endpoint::GetEvent => route(endpoint, events::one),
        Endpoint::GetFleet => route(endpoint, sessions::fleet),
        Endpoint::Live => route(endpoint, live::get),
        Endpoint::ListLinks => route(endpoint, links::list),
        Endpoint::AddLink => route(endpoint, links::add),
        Endpoint::DeleteLink => route(endpoint, links::delete),
        Endpoint::GetLink => route(endpoint, links::get),
        Endpoint::StoreData => route(endpoint, data::add).layer(DefaultBodyLimit::max(MAX_DATA)),
        Endpoint::GetData => route(endpoint, data::get),
        Endpoint::ListChildren => route(endpoint, agents::list),
        Endpoint::GetAgent => route(endpoint, agents::get),
        Endpoint::GetTranscript => route(endpoint, agents::transcript),
        Endpoint::SendMessage => route(endpoint, agents::send),
        Endpoint::CancelAgent => route(endpoint, agents::cancel),
        Endpoint::Confirm => route(endpoint, agents::confirm),
        Endpoint::SubmitToolResult => route(endpoint, agents::submit),
        Endpoint::GetRun => route(endpoint, runs::get),
        Endpoint::CancelRun => route(endpoint, runs::cancel),
        Endpoint::ListTasks => route(endpoint, tasks::list),
        Endpoint::GetTask => route(endpoint, tasks::get),
        Endpoint::GetTaskEvents => route(endpoint, events::of_task),
        Endpoint::WaitForTask => route(endpoint, tasks::wait),
        Endpoint::CancelTask => route(endpoint, tasks::cancel),
        Endpoint::RemoveTask => route(endpoint, tasks::remove),
        Endpoint::ListJobs => route(endpoint, jobs::list),
        Endpoint::AddJob => route(endpoint, jobs::add),
        Endpoint::GetJob => route(endpoint, jobs::get),
        Endpoint::CancelJob => route(endpoint, jobs::cancel),
        Endpoint::ListAgents => route(endpoint, catalog::agents),
        Endpoint::ListModels => route(endpoint, catalog::models),
        Endpoint::ListTools => route(endpoint, catalog::tools),
        Endpoint::Login => route(endpoint, login::login),
        Endpoint::Logout => route(endpoint, login::logout),
        Endpoint::Health => route(endpoint, async || "ok\n"),
        Endpoint::Ready => route(endpoint, server::ready),
        Endpoint::Metrics => route(endpoint, metrics::get),
        Endpoint::OpenApi => route(endpoint, document),
    }
}

fn route<H: Handler<T, Arc<App>>, T: 'static>(endpoint: Endpoint, handler: H) -> MethodRouter<Arc<App>> {
    let filter = match endpoint.operation().method() {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Delete => MethodFilter::DELETE,
    };
    on(filter, handler)
}

/// Adds the limits that the description of an endpoint requires.
fn limited(endpoint: Endpoint, mut handler: MethodRouter<Arc<App>>) -> MethodRouter<Arc<App>> {
    let operation = endpoint.operation();
    if operation.has_body() {
        handler = handler.layer(Extension(TakesBody));
    }
    if operation.is_open() {
        handler = handler.layer(DefaultBodyLimit::max(MAX_UNKNOWN));
    }
    if operation.has_query() { handler } else { handler.layer(from_fn(without_query)) }
}

/// Refuses query parameters that would be ignored: the caller would expect an effect.
async fn without_query(request: Request, next: Next) -> Response {
    if request.uri().query().is_some_and(|query| !query.is_empty()) {
        let detail = "this path takes no parameters after the `?`";
        return Problem::new(Code::BadQuery, detail).into_response();
    }
    next.run(request).await
}

/// Where the document has the prefix.
const PREFIX: &str = "\"url\": \"/\"";

/// The document before and after the prefix, as `cargo xtask schema` has written it.
static DOCUMENT: LazyLock<(String, String)> = LazyLock::new(|| {
    let document = packed!("openapi.json").text();
    let parts = document.split_once(PREFIX).map(|(before, after)| (before.to_owned(), after.to_owned()));
    parts.unwrap_or((document, String::new()))
});

/// Returns the OpenAPI document, for the prefix under which the routes are nested.
async fn document(prefix: Prefix) -> Response {
    let (before, after) = &*DOCUMENT;
    let url = Value::from(if prefix.0.is_empty() { "/" } else { &*prefix.0 });
    ([(header::CONTENT_TYPE, "application/json")], format!("{before}\"url\": {url}{after}")).into_response()
}
