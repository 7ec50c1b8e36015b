//! The cassette: a tape that is open.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use crate::{CassetteBuilder, CassetteError, Mode, router::Router};

/// A server on the loopback between a provider and its vendor, which records the vendor's
/// responses, or replays them in the vendor's place.
///
/// Give the provider [`url`](Self::url) as its base URL. The [`Mode`] is set by
/// `MAINSTEM_CASSETTE=auto|record|replay|off`, or [`CassetteBuilder::with_mode`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use mainstem_model::{ScriptedModel, scripted::Turn};
/// use mainstem_cassette::{Cassette, Mode};
/// use mainstem_testing::ModelServer;
///
/// // Sends a request as a provider does.
/// async fn send(url: &str) -> Result<String, Box<dyn std::error::Error>> {
///     let request = mainstem_http::client()?.post(format!("{url}/chat/completions"));
///     let request = request.bearer_auth("sk-secret-123");
///     let body = r#"{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}"#;
///     Ok(request.body(body).send().await?.text().await?)
/// }
///
/// # let dir = tempfile::tempdir()?;
/// # let tape = dir.path().join("hi.jsonl");
/// // Here a vendor that plays a script; "https://api.openai.com/v1" is another.
/// let model = ScriptedModel::new().agent("m", [Turn::new().text("Hello.")]);
/// let vendor = ModelServer::start(model).await?;
/// let builder = Cassette::builder(&tape, &vendor.base_url()).with_mode(Mode::Record);
/// let cassette = builder.open().await?;
/// let said = send(cassette.url()).await?;
/// cassette.finish().await?;
/// drop(vendor);
///
/// let builder = Cassette::builder(&tape, "https://api.openai.com/v1").with_mode(Mode::Replay);
/// let cassette = builder.open().await?;
/// assert_eq!(send(cassette.url()).await?, said);
/// cassette.finish().await?;
/// assert!(!std::fs::read_to_string(&tape)?.contains("sk-secret-123"));
/// # Ok(())
/// # }
/// ```
///
/// **Replay**: each recorded response is sent once, to the request it was recorded for: one of the
/// same method, path and body, except for the order of keys and places of
/// [`CassetteBuilder::with_ignored`]. It comes in the recorded chunks;
/// [`CassetteBuilder::with_pauses`] adds their pauses. A connection that the vendor cut is cut
/// again. Where the client left before the end, the response stays open at that place.
///
/// **A request that is not on the tape** is refused with status 417, and the provider's error
/// describes the difference from the nearest one that is. It also fails [`finish`](Self::finish),
/// and the test in which the cassette is dropped.
///
/// **Never on the tape** are headers other than a few harmless ones, and the keys seen in requests:
/// in headers, in the query, and wherever else they occur in a body, also across the boundary of
/// chunks. [`CassetteBuilder::with_secret`] adds values. A secret that a model spells out over
/// several events is not recognized.
///
/// A tape is for one cassette at a time. Dropping the cassette ends it, with every connection; an
/// response that is being recorded is stored as far as it has come.
#[must_use]
pub struct Cassette {
    pub(crate) path: PathBuf,
    pub(crate) url: String,
    pub(crate) router: Arc<Router>,
    pub(crate) may_leave_unused: bool,
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

    /// Creates a builder of a cassette with this tape and the base URL of the vendor's server.
    pub fn builder(path: impl Into<PathBuf>, upstream: &str) -> CassetteBuilder {
        CassetteBuilder::new(path.into(), upstream)
    }

    /// Returns the base URL for the provider: on the loopback, with the path of the vendor's.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the path of the tape.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the mode.
    pub fn mode(&self) -> Mode {
        self.router.mode
    }

    /// Returns the requests so far that are not on the tape, each with its difference from the
    /// nearest one.
    pub fn misses(&self) -> Vec<String> {
        self.router.tape().misses().to_vec()
    }

    /// Ends it. A response that is still being recorded has a second for its end.
    ///
    /// # Errors
    /// If a request was not on the tape, a response on it was not used, or it could not be
    /// written.
    pub async fn finish(mut self) -> Result<(), CassetteError> {
        self.router.settle().await;
        self.close()
    }

    fn close(&mut self) -> Result<(), CassetteError> {
        self.is_closed = true;
        self.router.stop.cancel();
        self.router.tape().close(self.may_leave_unused)
    }
}

impl Drop for Cassette {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        // A test that failed early has left responses unused, which is not an error.
        self.may_leave_unused = true;
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
            .field("mode", &self.router.mode)
            .finish_non_exhaustive()
    }
}
