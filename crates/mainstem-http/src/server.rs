//! The server of a model, and its credentials.

use std::{fmt, sync::Arc};

use mainstem_model::{Account, ErrorKind, ModelError};
use mainstem_outbound::Secrets;
use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};

use crate::{ConfigError, ServerError, address, server_error::excerpt};

/// How many bytes of a server's text are searched for a quotation.
const QUOTABLE: usize = 64 << 10;

/// An address, a key, and headers. Its secrets are never shown.
#[derive(Clone)]
pub struct Server {
    url: Url,
    /// Whether the user has set the URL.
    is_own_url: bool,
    host: Arc<str>,
    credential: Option<Credential>,
    /// How a key is sent.
    auth: Auth,
    headers: HeaderMap,
}

/// The credential of requests.
#[derive(Clone, Debug)]
enum Credential {
    /// Sent as the API prescribes.
    Key(SecretString),
    /// Sent as `Authorization: Bearer …`.
    Token(SecretString),
}

impl Credential {
    fn secret(&self) -> &str {
        let (Self::Key(secret) | Self::Token(secret)) = self;
        secret.expose_secret()
    }
}

/// How a key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the two ways in which a header carries a key")]
pub enum Auth {
    /// `Authorization: Bearer …`
    Bearer,
    /// Bare, in this header; its name is in lower case.
    Header(&'static str),
}

impl Server {
    /// Creates the server at this URL, without a key.
    pub fn new(url: Url, auth: Auth) -> Self {
        let host = address::host(&url);
        Self { host, url, is_own_url: false, credential: None, auth, headers: HeaderMap::new() }
    }

    /// Sets the URL; key and headers stay.
    pub fn set_url(&mut self, url: Url) {
        self.host = address::host(&url);
        self.url = url;
        self.is_own_url = true;
    }

    /// Returns what to check if the server can't be reached.
    pub(crate) fn advice(&self) -> &'static str {
        match self.url.host_str() {
            _ if self.is_own_url => "is the server running, and is the base URL right?",
            Some("localhost" | "127.0.0.1" | "[::1]") => "is the server running?",
            _ => "is this machine online?",
        }
    }

    /// Sets the key.
    pub fn set_key(&mut self, key: SecretString) {
        self.credential = Some(Credential::Key(key));
    }

    /// Sets a bearer token in place of the key.
    pub fn set_token(&mut self, token: SecretString) {
        self.credential = Some(Credential::Token(token));
    }

    /// Sets how a key is sent.
    ///
    /// # Panics
    /// If the name of its header is not a header's name in lower case.
    pub fn set_auth(&mut self, auth: Auth) {
        if let Auth::Header(name) = auth {
            HeaderName::from_static(name);
        }
        self.auth = auth;
    }

    /// Sets a header of every request. One that carries the key takes precedence over the key.
    ///
    /// # Errors
    /// If HTTP does not allow the name or the value, which is not shown.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let wrong =
            |problem: &str| ConfigError::Header { name: name.to_owned(), problem: problem.to_owned() };
        let header =
            HeaderName::try_from(name).map_err(|_| wrong("its name has characters that none may have"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| wrong("its value has characters that no header may have, such as a line break"))?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(())
    }

    /// Sets a header of every request that the vendor's documentation prescribes: it is not a
    /// secret, so it is shown. A header that the caller sets replaces it.
    pub fn set_constant(&mut self, name: &'static str, value: &'static str) {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }

    /// Returns the base URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns host and port: the server's name in messages.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns `true` if there is a key or a token.
    pub fn has_key(&self) -> bool {
        self.credential.is_some()
    }

    /// Returns the account that a service counts requests for: the host, the credential and the
    /// headers.
    pub fn account(&self) -> Account {
        let credential = self.credential.as_ref().map(Credential::secret);
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        Account::of((self.url.scheme(), &*self.host, credential, headers.collect::<Vec<_>>()))
    }

    /// Returns all headers of a request.
    ///
    /// # Errors
    /// If the key is not valid in a header.
    pub fn headers(&self) -> Result<HeaderMap, ModelError> {
        let mut headers = self.headers.clone();
        let Some(credential) = &self.credential else { return Ok(headers) };
        let auth = if let Credential::Token(_) = credential { Auth::Bearer } else { self.auth };
        let name = match auth {
            Auth::Bearer => AUTHORIZATION,
            Auth::Header(name) => HeaderName::from_static(name),
        };
        if !headers.contains_key(&name) {
            headers.insert(name, self.key_value(credential.secret(), auth)?);
        }
        Ok(headers)
    }

    fn key_value(&self, key: &str, auth: Auth) -> Result<HeaderValue, ModelError> {
        let value = match auth {
            Auth::Bearer => HeaderValue::try_from(format!("Bearer {key}")),
            Auth::Header(_) => HeaderValue::try_from(key),
        };
        let mut value = value.map_err(|_| {
            self.error(
                ErrorKind::Auth,
                "can't be asked: the API key has characters that no header may have, such as a line break",
            )
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Creates a failure at this server; `what` continues after its name.
    pub fn error(&self, kind: ErrorKind, what: &str) -> ModelError {
        ModelError::new(kind, self.sentence(what))
    }

    /// Creates the failure for a part of a request that this server's API has no form for.
    pub fn unsupported(&self, what: &str) -> ModelError {
        self.error(ErrorKind::Unsupported, what)
    }

    /// Creates the failure for data that is not an `answer` of the API; its beginning is quoted,
    /// without secrets.
    #[cold]
    pub fn malformed(&self, answer: &str, data: &str, error: &dyn fmt::Display) -> ModelError {
        let (said, error) = (self.quote(data), self.quote(&error.to_string()));
        self.error(ErrorKind::Protocol, &format!("sent what is no {answer}: {error}: {said}"))
    }

    /// Returns the failure that a server reports in the middle of its response; `None` if the data
    /// is not an error.
    #[cold]
    pub fn interruption(&self, data: &str) -> Option<ModelError> {
        let error = ServerError::read(&serde_json::from_str(data).ok()?)?;
        Some(error.interruption(self))
    }

    /// Creates the failure for a response without its end.
    pub fn unfinished(&self) -> ModelError {
        self.error(ErrorKind::Transport, "ended the connection before its answer was complete")
    }

    /// Returns a sentence: the server's name and what happened.
    pub(crate) fn sentence(&self, what: &str) -> String {
        format!("{} {what}", self.host)
    }

    /// Returns the beginning of a server's text, on one line, without secrets that it repeats.
    /// Every message that quotes a server uses this.
    pub fn quote(&self, text: &str) -> String {
        excerpt(&self.secrets().redact(&text[..text.floor_char_boundary(QUOTABLE)]))
    }

    /// Returns what messages must not show: the key, the values of headers, user and password, and
    /// the values of the query.
    fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        self.credential.iter().for_each(|credential| secrets.add(credential.secret()));
        let headers = self.headers.values().filter(|value| value.is_sensitive());
        headers.filter_map(|value| value.to_str().ok()).for_each(|value| secrets.add_header(value));
        secrets.add_url(&self.url);
        secrets
    }
}

impl fmt::Debug for Server {
    /// Shows the URL without user, password and query, and the names of the headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = format!("{}://{}{}", self.url.scheme(), self.host, self.url.path());
        f.debug_struct("Server")
            .field("url", &url)
            .field("credential", &self.credential)
            .field("headers", &self.headers)
            .finish()
    }
}

#[cfg(test)]
mod tests;
