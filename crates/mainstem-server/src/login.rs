//! `POST /login`, `POST /logout`: a browser keeps its token in a cookie, for `EventSource` sends no
//! headers of one's own.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use mainstem_api::{COOKIE, Code, Login};

use crate::{app::App, body::Body, problem::Problem};

/// The cookie is out of reach of scripts, and no other site's page can send it. Over TLS a proxy
/// may add `Secure`.
pub(crate) async fn login(
    State(app): State<Arc<App>>,
    Body(login, _): Body<Login>,
) -> Result<Response, Problem> {
    if app.tokens.tenant_of(&login.token).is_none() {
        return Err(Problem::new(Code::BadToken, "invalid token"));
    }
    Ok(set(&format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/", login.token)))
}

pub(crate) async fn logout() -> Response {
    set(&format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"))
}

fn set(cookie: &str) -> Response {
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie.to_owned())]).into_response()
}
