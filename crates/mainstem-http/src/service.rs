//! Services that offer an API: the vendor's own, and those of others.

use reqwest::Url;

use crate::{Auth, address, extend};

/// A service that offers an API: its address, its credentials, and its name.
///
/// Several services can offer the same API; a value of this type is a row of their table.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a constant of each service")]
pub struct Service {
    /// The name for `gen_ai.provider.name`, as in OpenTelemetry's [conventions]; a name of its own
    /// for a service that they lack.
    ///
    /// [conventions]: https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/
    pub provider: &'static str,
    /// The base URL, unless a variable has one; `None` if each user has an own.
    pub base_url: Option<&'static str>,
    /// The path that completes a base URL without a path, such as `openai/v1`; may be empty.
    pub path: &'static str,
    /// The hosts that require a key, such as `api.openai.com`, which includes their subdomains. A
    /// host has its port if that is not the scheme's.
    pub key_hosts: &'static [&'static str],
    /// How a key is sent.
    pub auth: Auth,
    /// Headers of every request that the documentation prescribes, names in lower case.
    pub headers: &'static [(&'static str, &'static str)],
    /// The environment variables with settings.
    pub variables: Variables,
}

impl Service {
    /// Declares a service at this base URL, which gets a key as a bearer token.
    pub const fn new(provider: &'static str, base_url: &'static str, variables: Variables) -> Self {
        let (path, key_hosts, headers): (_, &[&str], &[_]) = ("", &[], &[]);
        Self { provider, base_url: Some(base_url), path, key_hosts, auth: Auth::Bearer, headers, variables }
    }

    /// Returns the service, whose hosts require a key.
    #[must_use]
    pub const fn with_key_hosts(mut self, hosts: &'static [&'static str]) -> Self {
        self.key_hosts = hosts;
        self
    }

    /// Returns the service, which gets a key bare, in this header; the name is in lower case.
    #[must_use]
    pub const fn with_key_header(mut self, name: &'static str) -> Self {
        self.auth = Auth::Header(name);
        self
    }

    /// Returns `true` if a host, which has its port if that is not the scheme's, requires a key.
    pub fn is_key_required(&self, host: &str) -> bool {
        self.key_hosts.iter().any(|name| {
            host.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
    }

    /// Returns `true` if the service's own address requires a key.
    pub fn has_key_by_default(&self) -> bool {
        let base = self.base_url.and_then(|url| Url::parse(url).ok());
        base.is_some_and(|base| self.is_key_required(&address::host(&base)))
    }

    /// Completes a base URL that has no path.
    pub(crate) fn completed(&self, mut base: Url) -> Url {
        if base.path() == "/" {
            extend(&mut base, &self.path.split_terminator('/').collect::<Vec<_>>());
        }
        base
    }
}

/// The environment variables of a service.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a constant of each service")]
pub struct Variables {
    /// The key.
    pub key: &'static str,
    /// The base URL of a server other than the service's own.
    pub base_url: &'static str,
    /// The key if `key` is not set.
    pub other_key: Option<&'static str>,
    /// The base URL if `base_url` is not set.
    pub other_base_url: Option<&'static str>,
    /// A bearer token, used if both variables for a key are unset.
    pub token: Option<&'static str>,
    /// Headers: the variable with the value, and the name of the header.
    pub headers: &'static [(&'static str, &'static str)],
}

impl Variables {
    /// Declares a variable for the key and one for the base URL.
    pub const fn new(key: &'static str, base_url: &'static str) -> Self {
        Self { key, base_url, other_key: None, other_base_url: None, token: None, headers: &[] }
    }
}

#[cfg(test)]
mod tests {
    //! Hosts that require a key, and base URLs without a path.

    use super::*;

    const CLOUD: Service = Service {
        path: "openai/v1",
        ..Service::new("cloud", "https://api.cloud.example", Variables::new("KEY", "URL"))
            .with_key_hosts(&["api.cloud.example", "cloud.example:8080"])
    };

    #[test]
    fn hosts_and_their_subdomains_require_a_key() {
        let check = |host: &str, expected: bool| assert_eq!(CLOUD.is_key_required(host), expected, "{host}");
        check("api.cloud.example", true);
        check("eu.api.cloud.example", true);
        check("cloud.example:8080", true);
        check("cloud.example", false);
        check("fakeapi.cloud.example", false);
        check("api.cloud.example.evil.org", false);
        check("api.cloud.example:1", false);
        check("", false);
    }

    #[test]
    fn a_base_url_without_a_path_is_completed() {
        let check = |service: Service, url: &str, expected: &str| {
            assert_eq!(service.completed(Url::parse(url).unwrap()).as_str(), expected);
        };
        check(CLOUD, "https://h", "https://h/openai/v1");
        check(CLOUD, "https://h/?version=2", "https://h/openai/v1?version=2");
        check(CLOUD, "https://h/v2", "https://h/v2");
        check(Service { path: "", ..CLOUD }, "https://h", "https://h/");
    }
}
