//! A model behind an API, as a value.

mod env;
mod models;
mod open;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use mainstem_model::{Model, ModelRequest, ModelStream};
use reqwest::Url;
use secrecy::SecretString;

use crate::{Api, Auth, ConfigError, Dialect, Exchange, HttpClient, Server, Service, resumption::Resumer};

/// A model behind an API: its name, its server, and the API's own settings. Clones share what was
/// learned about the server; all models of a tokio runtime share connections.
///
/// Dropping a stream closes the connection, so that further tokens are not paid for; a response
/// that outlives its connection ([`Resumption`](crate::Resumption)) is cancelled. Retries after
/// transient failures, time limits and fallbacks are decorators of `mainstem-model`; without them,
/// only connecting has a limit (10 s).
#[derive(Clone)]
pub struct Endpoint<A: Api> {
    model: Arc<str>,
    service: &'static Service,
    base: Url,
    server: Arc<Server>,
    http: HttpClient,
    api: A,
    dialect: Arc<Mutex<A::Dialect>>,
}

impl<A: Api> Endpoint<A> {
    /// Creates a model at the vendor's own service. Does not read the environment.
    ///
    /// # Panics
    /// If [`Api::SERVICE`] has no base URL or an invalid one, or a header whose name is not in
    /// lower case.
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        let base = A::SERVICE.base_url.and_then(|url| Url::parse(url).ok());
        Self::at(&A::SERVICE, base.expect("the base URL of an API is valid"), model.into())
    }

    /// Creates a model of a service at this base URL.
    fn at(service: &'static Service, base: Url, model: Arc<str>) -> Self {
        let mut server = Server::new(A::url(&base, &model), service.auth);
        service.headers.iter().for_each(|(name, value)| server.set_constant(name, value));
        let dialect = fresh::<A>(service, &server);
        let (server, http, api) = (Arc::new(server), HttpClient::default(), A::default());
        Self { model, service, base, server, http, api, dialect }
    }

    /// Sets the model; server, key, settings and connections stay.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.model = model.into();
        self.moved()
    }

    /// Sets the base URL. A trailing slash is fine; the provider's documentation lists further
    /// forms.
    ///
    /// # Errors
    /// If it is not an http(s) URL.
    pub fn with_base_url(mut self, url: &str) -> Result<Self, ConfigError> {
        self.base = self.service.completed(A::base_url(url)?);
        Ok(self.moved())
    }

    /// Sets the key, which is sent as the vendor prescribes. It is never shown, and redacted in
    /// quotations of the server.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.server_mut().set_key(key.into());
        self
    }

    /// Sets a token in place of the key, which is sent as `Authorization: Bearer …`. It is never
    /// shown either.
    #[must_use]
    pub fn with_auth_token(mut self, token: impl Into<SecretString>) -> Self {
        self.server_mut().set_token(token.into());
        self
    }

    /// Sends the key bare in another header than the vendor's, as some gateways require; the name
    /// is in lower case.
    ///
    /// # Panics
    /// If that is not a header's name in lower case.
    #[must_use]
    pub fn with_key_header(mut self, name: &'static str) -> Self {
        self.server_mut().set_auth(Auth::Header(name));
        self
    }

    /// Adds a header to every request; it replaces one that carries the key. Values are never
    /// shown.
    ///
    /// # Errors
    /// If HTTP does not allow the name or the value.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, ConfigError> {
        self.server_mut().set_header(name, value)?;
        Ok(self)
    }

    /// Sets the HTTP client: for a proxy, certificates, a limit. The default is
    /// one as [`client`](crate::client) builds it, which all models of a tokio runtime share.
    #[must_use]
    pub fn with_client(mut self, client: impl Into<HttpClient>) -> Self {
        self.http = client.into();
        self
    }

    /// Replaces the settings that only this API has.
    #[must_use]
    pub fn with_api(mut self, api: A) -> Self {
        self.api = api;
        self
    }

    /// Returns the settings that only this API has.
    pub fn api(&self) -> &A {
        &self.api
    }

    /// Returns the server, with the headers of requests.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the dialect learned so far.
    pub fn dialect(&self) -> A::Dialect {
        self.dialect.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember_dialect(&self, dialect: A::Dialect) {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner) = dialect;
    }

    /// Forgets the dialect, which holds for one model of one server.
    fn moved(mut self) -> Self {
        let url = A::url(&self.base, &self.model);
        self.server_mut().set_url(url);
        self.dialect = fresh::<A>(self.service, &self.server);
        self
    }

    fn server_mut(&mut self) -> &mut Server {
        Arc::make_mut(&mut self.server)
    }
}

fn fresh<A: Api>(service: &Service, server: &Server) -> Arc<Mutex<A::Dialect>> {
    Arc::new(Mutex::new(A::Dialect::of(service, server.host())))
}

impl<A: Api> Model for Endpoint<A> {
    fn name(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> Option<&str> {
        Some(self.service.provider)
    }

    fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        self.api.can_enforce_schema(&self.model, &self.server, request)
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let decoder = A::decoder(self.server.clone());
        let resumer = Resumer::new(self.http.clone(), self.server.clone());
        Box::pin(Exchange::new(resumer, decoder, self.server.clone(), open::open(self.clone(), request)))
    }
}

impl<A: Api> fmt::Debug for Endpoint<A> {
    /// Shows no secrets: see [`Server`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("model", &self.model)
            .field("server", &self.server)
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
