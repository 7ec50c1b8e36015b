//! Where the model is, and how one gets in.

mod address;

use std::{fmt, sync::Arc};

use mainstem_model::{ErrorKind, ModelError};
use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};

use crate::ConfigError;

/// A secret shorter than this is not looked for in texts: it would tear holes into words.
const SHORTEST_SECRET: usize = 8;

#[derive(Clone)]
pub(crate) struct Server {
    url: Url,
    host: Arc<str>,
    key: Option<SecretString>,
    /// Azure takes the key bare, in a header of its own.
    key_header: HeaderName,
    headers: HeaderMap,
}

impl Server {
    pub(crate) fn openai() -> Self {
        let url = Url::parse("https://api.openai.com/v1/chat/completions");
        Self::at(url.expect("a constant URL parses"), AUTHORIZATION)
    }

    pub(crate) fn azure(endpoint: &str, deployment: &str, api_version: &str) -> Result<Self, ConfigError> {
        let url = address::azure(endpoint, deployment, api_version)?;
        Ok(Self::at(url, HeaderName::from_static("api-key")))
    }

    fn at(url: Url, key_header: HeaderName) -> Self {
        Self { host: address::host(&url), url, key: None, key_header, headers: HeaderMap::new() }
    }

    pub(crate) fn set_base_url(&mut self, base: &str) -> Result<(), ConfigError> {
        self.url = address::chat(base)?;
        self.host = address::host(&self.url);
        Ok(())
    }

    pub(crate) fn set_key(&mut self, key: SecretString) {
        self.key = Some(key);
    }

    pub(crate) fn set_header(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
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

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Host and port: the name of the server in messages.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Whether this is OpenAI itself, not one of the many that speak its language.
    pub(crate) fn is_openai(&self) -> bool {
        // Some regions have a host of their own.
        &*self.host == "api.openai.com" || self.host.ends_with(".api.openai.com")
    }

    /// All headers of a request. One set by hand wins over the key.
    pub(crate) fn headers(&self) -> Result<HeaderMap, ModelError> {
        let mut headers = self.headers.clone();
        if let Some(key) = &self.key
            && !headers.contains_key(&self.key_header)
        {
            headers.insert(self.key_header.clone(), self.key_value(key.expose_secret())?);
        }
        Ok(headers)
    }

    fn key_value(&self, key: &str) -> Result<HeaderValue, ModelError> {
        let value = if self.key_header == AUTHORIZATION {
            HeaderValue::try_from(format!("Bearer {key}"))
        } else {
            HeaderValue::try_from(key)
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

    /// A failure at this server; `what` goes on after its name.
    pub(crate) fn error(&self, kind: ErrorKind, what: &str) -> ModelError {
        ModelError::new(kind, self.sentence(what))
    }

    pub(crate) fn unsupported(&self, what: &str) -> ModelError {
        self.error(ErrorKind::Unsupported, what)
    }

    /// The server's name and what happened.
    pub(crate) fn sentence(&self, what: &str) -> String {
        format!("{} {what}", self.host)
    }

    /// What the server said, without any secret that it may have echoed.
    pub(crate) fn redact(&self, mut text: String) -> String {
        let key = self.key.as_ref().map(ExposeSecret::expose_secret);
        let headers = self.headers.values().filter_map(|value| value.to_str().ok());
        for secret in key.into_iter().chain(headers).filter(|secret| secret.len() >= SHORTEST_SECRET) {
            if text.contains(secret) {
                text = text.replace(secret, "[secret]");
            }
        }
        text
    }
}

impl fmt::Debug for Server {
    /// The URL without user, password and query, and the names of the headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = format!("{}://{}{}", self.url.scheme(), self.host, self.url.path());
        f.debug_struct("Server")
            .field("url", &url)
            .field("key", &self.key)
            .field("headers", &self.headers)
            .finish()
    }
}

#[cfg(test)]
mod tests;
