//! The builder of a cassette: secrets, ignored parts, and replay options.

use std::{fmt, path::PathBuf, sync::Arc};

use mainstem_http::{Url, parse};
use tokio::net::TcpListener;

use super::{Cassette, Mode, canonical::Ignored, router::Router, secrets::Secrets, serve, tape::Tape};
use crate::CassetteError;

/// The builder that [`Cassette::builder`] returns.
#[derive(Clone)]
#[must_use]
pub struct CassetteBuilder {
    path: PathBuf,
    upstream: String,
    mode: Option<Mode>,
    secrets: Secrets,
    ignored: Vec<String>,
    replays_pauses: bool,
    may_leave_unused: bool,
}

impl CassetteBuilder {
    pub(super) fn new(path: PathBuf, upstream: &str) -> Self {
        Self {
            path,
            upstream: upstream.to_owned(),
            mode: None,
            secrets: Secrets::default(),
            ignored: Vec::new(),
            replays_pauses: false,
            may_leave_unused: false,
        }
    }

    /// Sets the mode; overrides `MAINSTEM_CASSETTE`.
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Adds a value that must not be on the tape. Secrets in request headers and URLs are redacted
    /// without this.
    pub fn with_secret(mut self, secret: &str) -> Self {
        self.secrets.add(secret);
        self
    }

    /// Adds a place in JSON bodies that differs between runs: a JSON pointer, such as
    /// `/metadata/user_id`; a `*` in it stands for every key or index. It is neither recorded nor
    /// compared.
    pub fn with_ignored(mut self, pointer: &str) -> Self {
        self.ignored.push(pointer.to_owned());
        self
    }

    /// Sets whether pauses between chunks are replayed; off by default. Uses tokio's clock, so a
    /// paused clock skips them.
    pub fn with_pauses(mut self, replays_pauses: bool) -> Self {
        self.replays_pauses = replays_pauses;
        self
    }

    /// Sets whether responses on the tape may remain unused; by default [`Cassette::finish`]
    /// reports them.
    pub fn with_unused_allowed(mut self, is_allowed: bool) -> Self {
        self.may_leave_unused = is_allowed;
        self
    }

    /// Reads the tape, if it is to be replayed, and begins to serve.
    ///
    /// # Errors
    /// If a setting is invalid, if the tape can't be read or, for a replay, does not exist, or if
    /// the server can't bind a port on the loopback interface.
    pub async fn open(self) -> Result<Cassette, CassetteError> {
        let mode = self.mode.map_or_else(Mode::from_env, Ok)?;
        let upstream = upstream(&self.upstream)?;
        let mut tape = Tape::new(self.path.clone(), Ignored::parse(&self.ignored)?, self.secrets);
        if mode.can_play() && !tape.load()? && !mode.can_forward() {
            return Err(CassetteError::NoTape { path: self.path });
        }
        let failed = |error: std::io::Error| CassetteError::Start(error.into());
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let url = format!("http://{address}{}", upstream.path().trim_end_matches('/'));
        let router = Arc::new(Router::new(tape, mode, self.replays_pauses, upstream)?);
        #[expect(clippy::disallowed_methods, reason = "ends when the cassette is closed or dropped")]
        tokio::spawn(serve::accept(listener, router.clone()));
        Ok(Cassette {
            path: self.path,
            url,
            router,
            may_leave_unused: self.may_leave_unused,
            is_closed: false,
        })
    }
}

/// Parses the vendor's URL. Rejects credentials, because errors contain the URL.
fn upstream(text: &str) -> Result<Url, CassetteError> {
    let wrong = |problem: String| CassetteError::Upstream { problem };
    let url = parse(text).map_err(|error| wrong(error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(wrong(
            "its URL must have neither user, password nor query; give them to the provider".to_owned(),
        ));
    }
    Ok(url)
}

impl fmt::Debug for CassetteBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassetteBuilder")
            .field("path", &self.path)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
