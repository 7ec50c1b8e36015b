//! Settings from the environment, or from another source of variables.

use std::{env, sync::Arc};

use crate::{Api, ConfigError, Endpoint, Service, Variables};

impl<A: Api> Endpoint<A> {
    /// Creates a model as [`new`](Self::new) does, with the [`Variables`] of the environment. A
    /// variable without a value, or with only white space, is ignored.
    ///
    /// # Errors
    /// If the vendor's own service has no key, or a value is not valid.
    pub fn from_env(model: impl Into<Arc<str>>) -> Result<Self, ConfigError> {
        Self::from_vars(model, |name| env::var(name).ok())
    }

    /// Creates a model with variables from another source, such as a program's own configuration.
    ///
    /// # Errors
    /// The same as for [`from_env`](Self::from_env).
    pub fn from_vars(
        model: impl Into<Arc<str>>,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        Self::of_service(&A::SERVICE, model, var)
    }

    /// Creates a model of another service that offers this API, with the variables of that service.
    ///
    /// # Errors
    /// If the service has no base URL or no key, or a value is not valid.
    pub fn of_service(
        service: &'static Service,
        model: impl Into<Arc<str>>,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let Variables { key, base_url, other_key, other_base_url, token, headers } = service.variables;
        let first =
            |names: [Option<&str>; 2]| names.into_iter().flatten().find_map(|name| trimmed(&var, name));
        let url = first([Some(base_url), other_base_url]);
        let base =
            url.as_deref().or(service.base_url).ok_or(ConfigError::NoBaseUrl { variable: base_url })?;
        let mut endpoint = Self::at(service, service.completed(A::base_url(base)?), model.into());
        if url.is_some() {
            endpoint = endpoint.moved();
        }
        for (name, header) in headers {
            if let Some(value) = trimmed(&var, name) {
                endpoint = endpoint.with_header(header, &value)?;
            }
        }
        match (first([Some(key), other_key]), first([token, None])) {
            (Some(key), _) => Ok(endpoint.with_api_key(key)),
            (None, Some(token)) => Ok(endpoint.with_auth_token(token)),
            (None, None) if service.is_key_required(endpoint.server.host()) => {
                Err(ConfigError::NoKey { variable: key, instead: base_url })
            }
            (None, None) => Ok(endpoint),
        }
    }
}

/// Returns the value of a variable without the white space that comes with copying; `None` if it is
/// empty.
fn trimmed(var: impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}
