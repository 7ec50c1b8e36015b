//! A cassette before it is opened: what to hide, what does not count, how it plays.

use std::{fmt, path::PathBuf, sync::Arc};

use mainstem_http::{Url, parse};
use tokio::net::TcpListener;

use super::{Cassette, Mode, canonical::Ignored, deck::Deck, secrets::Secrets, serve, tape::Tape};
use crate::CassetteError;

/// What [`Cassette::builder`] gives.
#[derive(Clone)]
#[must_use]
pub struct CassetteBuilder {
    path: PathBuf,
    upstream: String,
    mode: Option<Mode>,
    secrets: Secrets,
    ignored: Vec<String>,
    paced: bool,
    may_leave_rest: bool,
}

impl CassetteBuilder {
    pub(super) fn new(path: PathBuf, upstream: &str) -> Self {
        Self {
            path,
            upstream: upstream.to_owned(),
            mode: None,
            secrets: Secrets::default(),
            ignored: Vec::new(),
            paced: false,
            may_leave_rest: false,
        }
    }

    /// Sets the mode, whatever `MAINSTEM_CASSETTE` says.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets a value that must not be on the tape, besides the keys in requests, which are found by
    /// themselves.
    pub fn redact(mut self, secret: &str) -> Self {
        self.secrets.add(secret);
        self
    }

    /// Sets a place in JSON bodies that differs from run to run: a JSON pointer, such as
    /// `/metadata/user_id`; a `*` in it stands for every key or index. It is neither recorded nor
    /// compared.
    pub fn ignore(mut self, pointer: &str) -> Self {
        self.ignored.push(pointer.to_owned());
        self
    }

    /// Plays the pauses between chunks, too. They obey tokio's clock, also a paused one.
    pub fn paced(mut self) -> Self {
        self.paced = true;
        self
    }

    /// Answers may be left that nobody asks for; without this [`Cassette::finish`] says which.
    pub fn may_leave_rest(mut self) -> Self {
        self.may_leave_rest = true;
        self
    }

    /// Reads the tape, if it is to be played, and begins to serve.
    ///
    /// # Errors
    /// A setting can't be used, the tape can't be read or, to be replayed, is not there; no port on
    /// the loopback.
    pub async fn open(self) -> Result<Cassette, CassetteError> {
        let mode = self.mode.map_or_else(Mode::from_env, Ok)?;
        let upstream = upstream(&self.upstream)?;
        let mut tape = Tape::new(self.path.clone(), Ignored::parse(&self.ignored)?, self.secrets);
        if mode.plays() && !tape.load()? && !mode.asks() {
            return Err(CassetteError::NoTape { path: self.path });
        }
        let failed = |error: std::io::Error| CassetteError::Start(error.into());
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let url = format!("http://{address}{}", upstream.path().trim_end_matches('/'));
        let deck = Arc::new(Deck::new(tape, mode, self.paced, upstream)?);
        #[expect(clippy::disallowed_methods, reason = "ends when the cassette is closed or dropped")]
        tokio::spawn(serve::accept(listener, deck.clone()));
        Ok(Cassette { path: self.path, url, deck, may_leave_rest: self.may_leave_rest, is_closed: false })
    }
}

/// Returns the vendor's server. What has its credentials there has them in every error that names
/// it.
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
