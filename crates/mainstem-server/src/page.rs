//! `GET /`: the page on which a fleet is watched, steered and replayed. `cargo xtask ui` builds it
//! from `ui/` and compares it with the files in `page/`.

mod document;

use std::sync::LazyLock;

use axum::{
    Router,
    extract::OriginalUri,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

pub use self::document::PageDocument;
use crate::packed::{Packed, packed};

const INDEX: &str = include_str!("../page/index.html");
const SCRIPT: Packed = packed!("page.js");
const STYLE: Packed = packed!("page.css");

/// The other files: a path, a media type, and the content.
const FILES: [(&str, &str, Packed); 4] = [
    ("/page/page.js", "text/javascript; charset=utf-8", SCRIPT),
    ("/page/page.css", "text/css; charset=utf-8", STYLE),
    ("/page/icon.svg", "image/svg+xml", packed!("icon.svg")),
    ("/page/licences.md", "text/plain; charset=utf-8", packed!("licences.md")),
];

/// Only files of this server run and are loaded, data of images aside; a string can't become
/// markup.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The names do not change with the content, so a browser asks each time whether it has changed.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::VARY, HeaderValue::from_static("accept-encoding")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// A file as it is sent.
struct File {
    media_type: &'static str,
    text: Bytes,
    gzip: Option<Bytes>,
    etag: String,
}

static SENT: LazyLock<Vec<File>> = LazyLock::new(|| FILES.iter().map(File::packed).collect());

/// Returns the routes of the page.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let files = FILES.iter().enumerate().fold(Router::new(), |router, (number, (path, ..))| {
        router.route(path, get(async move |headers: HeaderMap| SENT[number].respond(&headers)))
    });
    files.route("/", get(index))
}

async fn index(OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    File::new("text/html; charset=utf-8", linked(INDEX, uri.path()).into(), None).respond(&headers)
}

/// Returns the page with links that are right at this path. Relative to `/agents` they begin with
/// `agents/`; relative to `/agents/`, or to what a proxy has made of it, with nothing.
fn linked(index: &str, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() { index.to_owned() } else { index.replace("\"./page/", &format!("\"./{name}/page/")) }
}

impl File {
    fn packed((_, media_type, file): &(&str, &'static str, Packed)) -> Self {
        Self::new(media_type, file.text().into(), Some(file.gzip()))
    }

    fn new(media_type: &'static str, text: Bytes, gzip: Option<Bytes>) -> Self {
        let hash = Sha256::digest(&text);
        // Weak, because both encodings have it.
        let etag =
            format!("W/\"{}\"", hash[..12].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        Self { media_type, text, gzip, etag }
    }

    fn respond(&self, headers: &HeaderMap) -> Response {
        let has = |name: HeaderName, value: &str| {
            headers.get(name).and_then(|held| held.to_str().ok()).is_some_and(|held| held.contains(value))
        };
        let etag = [(header::ETAG, self.etag.clone())];
        if has(header::IF_NONE_MATCH, &self.etag) {
            return (StatusCode::NOT_MODIFIED, HEADERS, etag).into_response();
        }
        let content_type = [(header::CONTENT_TYPE, self.media_type)];
        if let Some(gzip) = self.gzip.clone().filter(|_| has(header::ACCEPT_ENCODING, "gzip")) {
            let encoding = [(header::CONTENT_ENCODING, "gzip")];
            return (HEADERS, etag, content_type, encoding, gzip).into_response();
        }
        (HEADERS, etag, content_type, self.text.clone()).into_response()
    }
}

#[cfg(test)]
mod tests {
    //! Where the page's links lead, and that it has all its files.

    use super::*;

    #[test]
    fn links_are_right_below_any_path() {
        assert_eq!(linked(INDEX, "/"), INDEX);
        assert_eq!(linked(INDEX, "/agents/"), INDEX);
        assert!(linked(INDEX, "/at/agents").contains("src=\"./agents/page/page.js\""));
        let links = INDEX.split('"').filter_map(|part| part.strip_prefix('.'));
        let served = |link: &str| FILES.iter().any(|(path, ..)| *path == link);
        let links: Vec<_> = links.collect();
        assert!(links.len() == 3 && links.iter().all(|link| served(link)), "{links:?}");
    }
}
