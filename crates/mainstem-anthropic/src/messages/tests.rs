//! Addresses, headers, and settings.

use super::*;
use crate::ConfigError;

#[test]
fn the_endpoint_lies_below_the_base_url() {
    let check = |base: &str, expected: &str| match Anthropic::new("m").with_base_url(base) {
        Ok(model) => assert_eq!(model.server().url().as_str(), expected),
        Err(error) => assert_eq!(error.to_string(), expected),
    };
    check("https://api.anthropic.com", "https://api.anthropic.com/v1/messages");
    check("https://api.anthropic.com/", "https://api.anthropic.com/v1/messages");
    check("https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages");
    check("https://h/anthropic/v1/", "https://h/anthropic/v1/messages");
    check("https://h/v1/messages", "https://h/v1/messages");
    check("http://localhost:11434?beta=true", "http://localhost:11434/v1/messages?beta=true");
    check(
        "localhost",
        "the base URL \"localhost\" can't be used: it must begin with http:// or https://, such as \"http://localhost\"",
    );
}

#[test]
fn anthropic_itself_is_known_by_its_host() {
    assert!(Messages::SERVICE.is_key_required("api.anthropic.com"));
    assert!(!Messages::SERVICE.is_key_required("api.anthropic.com.evil.org"));
    assert!(!Messages::SERVICE.is_key_required("localhost:8080"));
}

fn from_vars(vars: &[(&str, &str)]) -> Result<Anthropic, ConfigError> {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    Anthropic::from_vars("m", var)
}

/// Returns all headers, in order of their names.
fn headers(vars: &[(&str, &str)]) -> Vec<String> {
    let headers = from_vars(vars).unwrap().server().headers().unwrap();
    let mut shown: Vec<_> = headers.iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
    shown.sort_unstable();
    shown
}

#[test]
fn a_key_has_its_header_and_a_token_is_a_bearers() {
    let version = "anthropic-version: 2023-06-01";
    assert_eq!(headers(&[("ANTHROPIC_API_KEY", " sk-1\n")]), [version, "x-api-key: sk-1"]);
    assert_eq!(headers(&[("ANTHROPIC_AUTH_TOKEN", "t-1")]), [version, "authorization: Bearer t-1"]);
    let both = [("ANTHROPIC_AUTH_TOKEN", "t-1"), ("ANTHROPIC_API_KEY", "sk-1")];
    assert_eq!(headers(&both), [version, "x-api-key: sk-1"], "the key wins");
    let elsewhere = [("ANTHROPIC_BASE_URL", "http://localhost:1"), ("ANTHROPIC_API_KEY", "")];
    assert_eq!(headers(&elsewhere), [version]);
}

#[test]
fn the_version_can_be_another() {
    let anthropic = Anthropic::new("m").with_header("anthropic-version", "2026-10-21").unwrap();
    assert_eq!(anthropic.server().headers().unwrap()["anthropic-version"], "2026-10-21");
}
