//! Where the model is: OpenAI, Azure, or one of the many that speak its language.

use mainstem_http::{Auth, ConfigError, Server, Url, extend, parse};

/// OpenAI itself, for chat completions.
pub(crate) fn openai() -> Server {
    at_openai("https://api.openai.com/v1/chat/completions")
}

/// OpenAI itself, for responses.
pub(crate) fn openai_responses() -> Server {
    at_openai("https://api.openai.com/v1/responses")
}

fn at_openai(url: &'static str) -> Server {
    Server::new(Url::parse(url).expect("a constant URL parses"), Auth::Bearer)
}

/// The endpoint of a deployment in Azure, which takes the key bare, in a header of its own.
pub(crate) fn azure(endpoint: &str, deployment: &str, api_version: &str) -> Result<Server, ConfigError> {
    let mut url = parse(endpoint)?;
    extend(&mut url, &["openai", "deployments", deployment, "chat", "completions"]);
    url.query_pairs_mut().append_pair("api-version", api_version);
    Ok(Server::new(url, Auth::Header("api-key")))
}

/// Chat completions below a base URL; the whole endpoint, which people paste too, is as good.
pub(crate) fn chat(base: &str) -> Result<Url, ConfigError> {
    endpoint(base, &["chat", "completions"])
}

/// Responses below a base URL, or the whole endpoint.
pub(crate) fn responses(base: &str) -> Result<Url, ConfigError> {
    endpoint(base, &["responses"])
}

fn endpoint(base: &str, segments: &[&str]) -> Result<Url, ConfigError> {
    let mut url = parse(base)?;
    if !url.path().trim_end_matches('/').ends_with(&format!("/{}", segments.join("/"))) {
        extend(&mut url, segments);
    }
    Ok(url)
}

/// Whether this is OpenAI itself.
pub(crate) fn is_openai(server: &Server) -> bool {
    // Some regions have a host of their own.
    server.host() == "api.openai.com" || server.host().ends_with(".api.openai.com")
}

#[cfg(test)]
mod tests;
