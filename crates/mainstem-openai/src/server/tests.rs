//! Addresses.

use super::*;

fn server(base: &str) -> Result<Server, ConfigError> {
    Ok(Server::new(chat(base)?, Auth::Bearer))
}

#[test]
fn the_endpoint_lies_below_the_base_url() {
    let check = |base: &str, expected: &str| match server(base) {
        Ok(server) => assert_eq!(format!("{} at {}", server.url(), server.host()), expected),
        Err(error) => assert_eq!(error.to_string(), expected),
    };
    check("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions at api.openai.com");
    check("http://localhost:8080/v1/", "http://localhost:8080/v1/chat/completions at localhost:8080");
    check(" http://[::1]:1 ", "http://[::1]:1/chat/completions at [::1]:1");
    check("https://h/v1/chat/completions", "https://h/v1/chat/completions at h");
    check("https://h/v1/chat/completions/", "https://h/v1/chat/completions/ at h");
    check(
        "https://h/openai/v1?api-version=preview",
        "https://h/openai/v1/chat/completions?api-version=preview at h",
    );
}

#[test]
fn openai_itself_is_known_by_its_host() {
    let check =
        |base: &str, expected: bool| assert_eq!(is_openai(&server(base).unwrap()), expected, "{base}");
    check("https://api.openai.com/v1", true);
    check("https://eu.api.openai.com/v1", true);
    check("https://fakeapi.openai.com.evil.org/v1", false);
    check("https://notapi.openai.com/v1", false);
    check("http://localhost:8080/v1", false);
}

#[test]
fn azure_has_its_own_address() {
    let server = azure("https://res.openai.azure.com/", "my gpt", "2024-10-21").unwrap();
    let path = "openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21";
    assert_eq!(server.url().as_str(), format!("https://res.openai.azure.com/{path}"));
    assert!(azure("res.openai.azure.com", "gpt", "v").is_err());
}
