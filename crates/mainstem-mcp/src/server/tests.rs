//! What declarations say, and what is wrong with them.

use super::*;

#[track_caller]
fn check(json: &str, expected: &str) {
    let server = serde_json::from_str::<Server>(json);
    assert_eq!(server.unwrap_err().to_string(), expected, "{json}");
}

#[test]
fn a_declaration_that_makes_no_sense_says_what_is_wrong() {
    check("{}", "it needs `command`, a program to start, or `url`, an address for streamable HTTP");
    check(r#"{"command": "a", "url": "http://b"}"#, "it has both `command` and `url`; remove one");
    check(r#"{"command": " "}"#, "`command` is empty");
    check(r#"{"url": "ftp://b"}"#, "`url` must begin with http:// or https://");
    check(r#"{"command": "a", "headers": {"X": "y"}}"#, "`headers` belong to a `url`, not to a `command`");
    check(
        r#"{"url": "http://b", "args": ["x"]}"#,
        "`args`, `env` and `cwd` belong to a `command`, not to a `url`",
    );
    check(r#"{"command": "a", "timeout_seconds": 0}"#, "a timeout has at least 1 second");
    check(
        "\"npx\"",
        "invalid type: string \"npx\", expected a table that declares an MCP server at line 1 column 5",
    );
    check(
        r#"{"type": "sse", "url": "http://b/sse"}"#,
        "its `type` is an old transport; servers are reached by `command`, or by `url` over streamable HTTP",
    );
}

#[test]
fn a_declaration_is_what_the_builder_builds() {
    let read: Server = serde_json::from_str(
        r#"{"type": "stdio", "command": "a", "args": ["b"], "env": {"K": "${K}"}, "cwd": "d", "tools": ["x*", "y"],
            "trusted": true, "listed_only": true, "timeout_seconds": 5, "start_timeout_seconds": 7}"#,
    )
    .unwrap();
    let built = Server::command("a", ["b"]).with_env("K", "${K}").with_dir("d").with_tools(["x*", "y"]);
    let built = built.with_trust(true).with_listed_only(true).with_timeout(Duration::from_secs(5));
    assert_eq!(read, built.with_start_timeout(Duration::from_secs(7)));
    assert!(read.offers("xyz") && read.offers("y") && !read.offers("yz"));
    let http: Server =
        serde_json::from_str(r#"{"url": "http://h/mcp?key=s3cret", "headers": {"A": "s3cret"}}"#).unwrap();
    assert_eq!(http, Server::http("http://h/mcp?key=s3cret").with_header("A", "s3cret"));
    assert!(!format!("{http} {http:?}").contains("s3cret"), "{http:?}");
    assert_eq!(http.to_string(), "http://h/mcp");
}

#[test]
fn secrets_are_written_as_variables() {
    let command = |name: &str, value: &str| Server::command("a", [""; 0]).with_env(name, value);
    assert_eq!(command("GITHUB_TOKEN", "ghp_x").secret_in_plain(), Some("GITHUB_TOKEN"));
    assert_eq!(command("GITHUB_TOKEN", "${GITHUB_TOKEN}").secret_in_plain(), None);
    for plain in ["LOG_LEVEL", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "KEYBOARD"] {
        assert_eq!(command(plain, "debug").secret_in_plain(), None, "{plain}");
    }
    assert_eq!(command("X-Api-Key", "x").secret_in_plain(), Some("X-Api-Key"));
    let named = Server::http("http://user:hunter2@host/mcp?key=x");
    assert_eq!((named.secret_in_plain(), &*named.to_string()), (Some("the URL"), "http://host/mcp"));
    let http = Server::http("http://h").with_header("Authorization", "Bearer x");
    assert_eq!(http.secret_in_plain(), Some("Authorization"));
}
