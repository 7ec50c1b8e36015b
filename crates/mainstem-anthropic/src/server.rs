//! Where the model is: Anthropic, or one of those that speak its language.

use mainstem_http::{Auth, ConfigError, Server, Url, extend, parse};

/// How a key is sent; a token goes as a bearer.
pub(crate) const API_KEY: Auth = Auth::Header("x-api-key");

/// Anthropic itself.
pub(crate) fn anthropic() -> Server {
    let url = Url::parse("https://api.anthropic.com/v1/messages");
    let mut server = Server::new(url.expect("a constant URL parses"), API_KEY);
    server.set_constant("anthropic-version", "2023-06-01");
    server
}

/// The endpoint below a base URL; with `/v1`, or the whole endpoint, which people paste too, is as good.
pub(crate) fn messages(base: &str) -> Result<Url, ConfigError> {
    let mut url = parse(base)?;
    let path = url.path().trim_end_matches('/').to_owned();
    if path.ends_with("/v1") {
        extend(&mut url, &["messages"]);
    } else if !path.ends_with("/v1/messages") {
        extend(&mut url, &["v1", "messages"]);
    }
    Ok(url)
}

/// Whether this is Anthropic itself.
pub(crate) fn is_anthropic(server: &Server) -> bool {
    server.host() == "api.anthropic.com"
}

#[cfg(test)]
mod tests;
