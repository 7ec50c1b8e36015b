//! Addresses, headers, and what a message may show.

use super::*;

fn server(base: &str) -> Result<Server, ConfigError> {
    let mut server = Server::openai();
    server.set_base_url(base)?;
    Ok(server)
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
    let wants = "it must begin with http:// or https://, such as";
    check(
        "localhost:8080/v1",
        &format!("the base URL \"localhost:8080/v1\" can't be used: {wants} \"http://localhost:8080/v1\""),
    );
    check("ftp://me:secret@h/x", &format!("the base URL \"h/x\" can't be used: {wants} \"http://h/x\""));
    check("", &format!("the base URL \"\" can't be used: {wants} \"http://\""));
    check("http://", "the base URL \"http://\" can't be used: empty host");
    check("http://h:99999", "the base URL \"http://h:99999\" can't be used: invalid port number");
}

#[test]
fn openai_itself_is_known_by_its_host() {
    let check =
        |base: &str, expected: bool| assert_eq!(server(base).unwrap().is_openai(), expected, "{base}");
    check("https://api.openai.com/v1", true);
    check("https://eu.api.openai.com/v1", true);
    check("https://fakeapi.openai.com.evil.org/v1", false);
    check("https://notapi.openai.com/v1", false);
    check("http://localhost:8080/v1", false);
}

#[test]
fn azure_has_its_own_address() {
    let azure = Server::azure("https://res.openai.azure.com/", "my gpt", "2024-10-21").unwrap();
    let path = "openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21";
    assert_eq!(azure.url().as_str(), format!("https://res.openai.azure.com/{path}"));
    assert!(Server::azure("res.openai.azure.com", "gpt", "v").is_err());
}

#[test]
fn the_key_goes_where_the_server_wants_it() {
    let check = |mut server: Server, header: &str, expected: &str| {
        server.set_key("sk-123456789".into());
        let headers = server.headers().unwrap();
        assert_eq!(headers.get(header).map(|value| value.to_str().unwrap()), Some(expected));
        assert_eq!(headers.len(), 1);
    };
    check(Server::openai(), "authorization", "Bearer sk-123456789");
    check(Server::azure("https://h", "d", "v").unwrap(), "api-key", "sk-123456789");
    let mut by_hand = Server::openai();
    by_hand.set_header("Authorization", "Basic xyz").unwrap();
    check(by_hand, "authorization", "Basic xyz");
}

#[test]
fn secrets_are_not_shown() {
    let mut server = server("http://user:password@h:1/v1?sig=signature").unwrap();
    server.set_key("sk-123456789".into());
    server.set_header("x-token", "token-abcdef").unwrap();
    let shown = format!("{server:?}");
    for secret in ["sk-123", "token-abc", "password", "signature"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(shown.contains("http://h:1/v1/chat/completions") && shown.contains("x-token"), "{shown}");
    assert_eq!(server.redact("knows sk-123456789, token-abcdef".into()), "knows [secret], [secret]");
}

#[test]
fn what_no_header_can_carry_is_said() {
    let mut server = Server::openai();
    let error = server.set_header("x-a", "line\nbreak-of-a-secret").unwrap_err().to_string();
    assert!(
        error.starts_with("the header \"x-a\" can't be sent: its value") && !error.contains("secret"),
        "{error}"
    );
    assert!(server.set_header("a b", "x").unwrap_err().to_string().contains("its name"));
    server.set_key("sk-1\n".into());
    let error = server.headers().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.to_string().starts_with("api.openai.com can't be asked: the API key"), "{error}");
}
