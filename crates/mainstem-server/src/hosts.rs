//! Host names that requests can be sent to. The check stops DNS rebinding: a foreign page whose
//! name resolves to the loopback sends requests under that name.

use axum::http::{HeaderMap, header};

use crate::problem::Problem;
use mainstem_api::Code;

/// Host names, without ports, that requests can be sent to and that pages can come from. The names
/// of the loopback are always among them.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    names: Vec<String>,
    all: bool,
}

impl Hosts {
    /// Creates a list of the names of the loopback.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into().to_ascii_lowercase());
        self
    }

    /// Creates a list of all names, for a server behind a proxy that checks them.
    #[must_use]
    pub fn all() -> Self {
        Self { names: Vec::new(), all: true }
    }

    /// Checks [`Host`](header::HOST), and [`Origin`](header::ORIGIN) if there is one.
    pub(crate) fn check(&self, authority: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
        if headers.get_all(header::HOST).iter().count() > 1 {
            let detail = "the request has more than one Host header";
            return Err(Problem::new(Code::TwoHosts, detail));
        }
        if self.all {
            return Ok(());
        }
        let header = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let host = authority.or_else(|| header(header::HOST)).unwrap_or_default();
        if !self.knows(host) {
            return Err(refused("Host", host));
        }
        match header(header::ORIGIN).or_else(|| headers.contains_key(header::ORIGIN).then_some("?")) {
            Some(origin) if !self.knows_origin(origin) => Err(refused("Origin", origin)),
            _ => Ok(()),
        }
    }

    fn knows_origin(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| self.knows(host))
    }

    fn knows(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        let is_loopback = matches!(&*name, "localhost" | "127.0.0.1" | "[::1]");
        is_loopback || self.names.contains(&name)
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

fn refused(header: &str, value: &str) -> Problem {
    let value: String = value.chars().take(100).collect();
    let detail = format!("{header} {value:?} is not allowed here; `--allow-host` allows a name");
    Problem::new(Code::HostNotAllowed, detail)
}

#[cfg(test)]
mod tests {
    //! Which names are allowed.

    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(host: &str, origin: Option<&str>, expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let hosts = Hosts::new().with_name("Agents.example");
        assert_eq!(hosts.check(None, &headers).is_ok(), expected, "{host} {origin:?}");
        assert!(Hosts::all().check(None, &headers).is_ok());
    }

    #[test]
    fn only_known_names_are_answered() {
        let mut twice = HeaderMap::new();
        twice.append(header::HOST, HeaderValue::from_static("localhost"));
        twice.append(header::HOST, HeaderValue::from_static("localhost"));
        assert!(Hosts::new().check(None, &twice).is_err() && Hosts::all().check(None, &twice).is_err());
        check("localhost:7878", None, true);
        check("127.0.0.1", None, true);
        check("[::1]:7878", None, true);
        check("agents.EXAMPLE:443", None, true);
        check("evil.example", None, false);
        check("localhost.evil.example", None, false);
        check("127.0.0.1.evil.example:7878", None, false);
        check("", None, false);
        check("localhost:7878", Some("http://localhost:5173"), true);
        check("localhost", Some("https://agents.example"), true);
        check("localhost", Some("http://evil.example"), false);
        check("localhost", Some("null"), false);
        check("localhost", Some("file://localhost"), false);
    }
}
