//! Addresses.

use super::*;

#[test]
fn the_endpoint_lies_below_the_base_url() {
    let check = |base: &str, expected: &str| match messages(base) {
        Ok(url) => assert_eq!(url.as_str(), expected),
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
    let check = |base: &str, expected: bool| {
        let mut server = anthropic();
        server.set_url(messages(base).unwrap());
        assert_eq!(is_anthropic(&server), expected, "{base}");
    };
    check("https://api.anthropic.com/v1", true);
    check("https://api.anthropic.com.evil.org", false);
    check("http://localhost:8080", false);
}
