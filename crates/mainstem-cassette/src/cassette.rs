//! The value: a tape that is open.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use crate::{CassetteBuilder, CassetteError, Mode, deck::Deck};

/// A server on the loopback between a provider and its vendor, that records what the vendor says,
/// or says it in the vendor's place.
///
/// The provider gets [`url`](Self::url) as its base URL and knows nothing of it. [`Mode`] says what
/// is done: `MAINSTEM_CASSETTE=auto|record|replay|off`, or [`CassetteBuilder::mode`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use mainstem_model::{ScriptedModel, scripted::Turn};
/// use mainstem_cassette::{Cassette, Mode};
/// use mainstem_testing::ModelServer;
///
/// // Asks as a provider would.
/// async fn ask(url: &str) -> Result<String, Box<dyn std::error::Error>> {
///     let request = mainstem_http::client()?.post(format!("{url}/chat/completions")).bearer_auth("sk-secret-123");
///     let body = r#"{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}"#;
///     Ok(request.body(body).send().await?.text().await?)
/// }
///
/// # let dir = tempfile::tempdir()?;
/// # let tape = dir.path().join("hi.jsonl");
/// // Here a vendor that plays a script; "https://api.openai.com/v1" is another.
/// let vendor = ModelServer::start(ScriptedModel::new().agent("m", [Turn::new().text("Hello.")])).await?;
/// let cassette = Cassette::builder(&tape, &vendor.base_url()).mode(Mode::Record).open().await?;
/// let said = ask(cassette.url()).await?;
/// cassette.finish().await?;
/// drop(vendor);
///
/// let cassette = Cassette::builder(&tape, "https://api.openai.com/v1").mode(Mode::Replay).open().await?;
/// assert_eq!(ask(cassette.url()).await?, said);
/// cassette.finish().await?;
/// assert!(!std::fs::read_to_string(&tape)?.contains("sk-secret-123"));
/// # Ok(())
/// # }
/// ```
///
/// **Played** is each recorded answer once, to the request it was recorded for: of the same method,
/// path and body, where neither the order of keys counts nor what [`CassetteBuilder::ignore`]
/// names. It comes in the chunks in which it came; [`CassetteBuilder::paced`] keeps the pauses as
/// well. A connection that the vendor cut is cut again. Where the client left before the end, the
/// answer stays open at that place.
///
/// **A request that is not on the tape** is refused with status 417, and the provider's error says
/// in what it differs from the nearest one that is. The cassette keeps it in mind, too:
/// [`finish`](Self::finish) fails, and so does the test in which it is dropped.
///
/// **Never on the tape** are headers other than a few harmless ones, and the keys seen in requests:
/// in headers, in the query, and wherever else they turn up in a body, also across the boundary of
/// chunks. [`CassetteBuilder::redact`] adds values. What a model spells out over several events is
/// not recognized.
///
/// A tape is for one cassette at a time. Dropping the cassette ends it, with every connection; what
/// is being recorded then is kept as far as it came.
#[must_use]
pub struct Cassette {
    pub(crate) path: PathBuf,
    pub(crate) url: String,
    pub(crate) deck: Arc<Deck>,
    pub(crate) may_leave_rest: bool,
    pub(crate) is_closed: bool,
}

impl Cassette {
    /// Opens a tape for requests to this server, in the mode that `MAINSTEM_CASSETTE` names.
    ///
    /// # Errors
    /// See [`CassetteBuilder::open`].
    pub async fn open(path: impl Into<PathBuf>, upstream: &str) -> Result<Self, CassetteError> {
        Self::builder(path, upstream).open().await
    }

    /// Returns a tape, and the base URL of the server whose answers are, or will be, on it.
    pub fn builder(path: impl Into<PathBuf>, upstream: &str) -> CassetteBuilder {
        CassetteBuilder::new(path.into(), upstream)
    }

    /// Returns what to set as base URL: on the loopback, with the path of the vendor's.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns where the tape is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what it does.
    pub fn mode(&self) -> Mode {
        self.deck.mode
    }

    /// Returns what was asked so far and is not on the tape, each with how it differs from what is.
    pub fn misses(&self) -> Vec<String> {
        self.deck.tape().misses().to_vec()
    }

    /// Ends it. An answer that is still being recorded has a second for its end.
    ///
    /// # Errors
    /// Something was asked that is not on the tape; something is on it that nobody asked for; it
    /// could not be written.
    pub async fn finish(mut self) -> Result<(), CassetteError> {
        self.deck.settle().await;
        self.close()
    }

    fn close(&mut self) -> Result<(), CassetteError> {
        self.is_closed = true;
        self.deck.stop.cancel();
        self.deck.tape().close(self.may_leave_rest)
    }
}

impl Drop for Cassette {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        // A test that ended early has left something, which is no fault.
        self.may_leave_rest = true;
        if let Err(error) = self.close()
            && !thread::panicking()
        {
            panic!("{error}");
        }
    }
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Cassette");
        shown
            .field("path", &self.path)
            .field("url", &self.url)
            .field("mode", &self.deck.mode)
            .finish_non_exhaustive()
    }
}
