//! Where the model is: Google, or whoever speaks its language.

use mainstem_http::{Auth, Server, Url, extend};

/// Google itself.
pub(crate) const GOOGLE: &str = "generativelanguage.googleapis.com";

/// Google's base URL.
pub(crate) fn google() -> Url {
    Url::parse("https://generativelanguage.googleapis.com").expect("a constant URL parses")
}

/// The server of a model below a base URL.
pub(crate) fn server(base: &Url, model: &str) -> Server {
    Server::new(endpoint(base, model), Auth::Header("x-goog-api-key"))
}

/// `{base}/v1beta/models/{model}:streamGenerateContent?alt=sse`. A base URL that has a version in its path needs no other, and a
/// model's name that is a path (`tunedModels/mine`) no `models/` before it.
pub(crate) fn endpoint(base: &Url, model: &str) -> Url {
    let mut url = base.clone();
    if !base.path().split('/').any(is_version) {
        extend(&mut url, &["v1beta"]);
    }
    let method = format!("{model}:streamGenerateContent");
    let path =
        if model.contains('/') { "" } else { "models/" }.split_terminator('/').chain(method.split('/'));
    extend(&mut url, &path.collect::<Vec<_>>());
    url.query_pairs_mut().append_pair("alt", "sse");
    url
}

/// `v1`, `v1beta`, `v1beta1`, `v2alpha`.
fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else { return false };
    let word = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let stage = word.trim_end_matches(|c: char| c.is_ascii_digit());
    word.len() < rest.len() && matches!(stage, "" | "alpha" | "beta")
}

/// Whether this is Google itself, which wants a key.
pub(crate) fn is_google(server: &Server) -> bool {
    server.host() == GOOGLE
}

#[cfg(test)]
mod tests;
