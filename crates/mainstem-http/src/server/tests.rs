//! Keys, headers, and what messages show.

use super::*;

fn server(auth: Auth) -> Server {
    Server::new(Url::parse("https://api.example.com/v1").unwrap(), auth)
}

#[test]
fn the_key_goes_where_the_server_wants_it() {
    let check = |mut server: Server, header: &str, expected: &str| {
        server.set_key("sk-123456789".into());
        let headers = server.headers().unwrap();
        assert_eq!(headers.get(header).map(|value| value.to_str().unwrap()), Some(expected));
        assert_eq!(headers.len(), 1);
    };
    check(server(Auth::Bearer), "authorization", "Bearer sk-123456789");
    check(server(Auth::Header("api-key")), "api-key", "sk-123456789");
    let mut by_hand = server(Auth::Bearer);
    by_hand.set_header("Authorization", "Basic xyz").unwrap();
    check(by_hand, "authorization", "Basic xyz");
}

#[test]
fn secrets_are_not_shown() {
    let mut server =
        Server::new(Url::parse("http://user:password@h:1/v1?sig=signature").unwrap(), Auth::Bearer);
    server.set_key("sk-123456789".into());
    server.set_header("x-token", "token-abcdef").unwrap();
    let shown = format!("{server:?}");
    for secret in ["sk-123", "token-abc", "password", "signature"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(shown.contains("http://h:1/v1") && shown.contains("x-token"), "{shown}");
    assert_eq!(server.quote("knows sk-123456789, token-abcdef"), "knows [secret], [secret]");
    assert_eq!(
        server.quote("nothing at /v1/x?sig=signature for user, whose password is password"),
        "nothing at /v1/x?sig=[secret] for user, whose [secret] is [secret]"
    );
    server.set_header("authorization", "Basic bWU6aHVudGVyMg==").unwrap();
    assert_eq!(server.quote("not bWU6aHVudGVyMg==, me:hunter2"), "not [secret], [secret]");
    // Redacted before it is cut, so that no part of a secret is left.
    let text = format!("{} sk-123456789", "x".repeat(190));
    assert_eq!(server.quote(&text), format!("{} [secret]", "x".repeat(190)));
    assert_eq!(server.quote(&"é".repeat(1 << 20)).chars().count(), 201);
}

#[test]
fn a_constant_is_no_secret_until_it_is_set_by_hand() {
    let mut server = server(Auth::Bearer);
    server.set_constant("x-version", "2023-06-01");
    assert_eq!(server.headers().unwrap()["x-version"], "2023-06-01");
    assert_eq!(server.quote("since 2023-06-01"), "since 2023-06-01");
    assert!(format!("{server:?}").contains("2023-06-01"));
    server.set_header("X-Version", "2026-10-21").unwrap();
    assert_eq!(server.headers().unwrap()["x-version"], "2026-10-21");
}

#[test]
fn what_no_header_can_carry_is_said() {
    let mut server = server(Auth::Bearer);
    let error = server.set_header("x-a", "line\nbreak-of-a-secret").unwrap_err().to_string();
    assert!(
        error.starts_with("the header \"x-a\" can't be sent: its value") && !error.contains("secret"),
        "{error}"
    );
    assert!(server.set_header("a b", "x").unwrap_err().to_string().contains("its name"));
    server.set_key("sk-1\n".into());
    let error = server.headers().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.to_string().starts_with("api.example.com can't be asked: the API key"), "{error}");
}
