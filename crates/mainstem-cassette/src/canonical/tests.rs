//! The canonical form of requests.

use serde_json::json;

use super::*;

fn requested(path: &str, body: Value) -> TapeRequest {
    let body = Some(Body::Json(body));
    TapeRequest { method: "POST".to_owned(), path: path.to_owned(), headers: [].into(), body }
}

/// Checks the canonical form of a body.
fn check(ignored: &[&str], body: Value, expected: &str) {
    let pointers: Vec<_> = ignored.iter().map(|&pointer| pointer.to_owned()).collect();
    let mut requested = requested("/", body);
    Ignored::parse(&pointers).unwrap().canonical(&mut requested);
    let Some(Body::Json(left)) = requested.body else { panic!("it is JSON") };
    assert_eq!(left.to_string(), expected, "{ignored:?}");
}

#[test]
fn keys_are_sorted_at_every_depth() {
    check(&[], json!({"b": 1, "a": [{"d": 2, "c": 3}]}), r#"{"a":[{"c":3,"d":2}],"b":1}"#);
}

#[test]
fn what_differs_from_run_to_run_is_left_out() {
    let body =
        || json!({"user": {"id": 7, "name": "x"}, "m": [{"id": 1, "t": "a"}, {"id": 2, "t": "b"}], "a/b": 1});
    check(&["/user/id"], body(), r#"{"a/b":1,"m":[{"id":1,"t":"a"},{"id":2,"t":"b"}],"user":{"name":"x"}}"#);
    check(&["/m/*/id", "/user"], body(), r#"{"a/b":1,"m":[{"t":"a"},{"t":"b"}]}"#);
    check(&["/m/0", "/user"], body(), r#"{"a/b":1,"m":[null,{"id":2,"t":"b"}]}"#);
    check(&["/m", "/user/*"], body(), r#"{"a/b":1,"user":{}}"#);
    check(&["/m", "/user", "/a~1b"], body(), "{}");
    check(
        &["/m", "/user/id/deeper", "/nothing", "/a~1b/0"],
        body(),
        r#"{"a/b":1,"user":{"id":7,"name":"x"}}"#,
    );
}

#[test]
fn a_pointer_begins_with_a_slash() {
    let error = Ignored::parse(&["user.id".to_owned()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#""user.id" is not a JSON pointer: it must begin with a slash, such as "/metadata/user_id""#
    );
}

#[test]
fn same_is_method_path_query_and_body_but_no_key() {
    let one = requested("/v1/chat?alt=sse&key=[redacted]", json!({"a": 1}));
    let check = |path: &str, body: Value, expected: bool| {
        assert_eq!(same(&one, &requested(path, body.clone())), expected, "{path} {body}");
    };
    check("/v1/chat?alt=sse&key=[redacted]", json!({"a": 1}), true);
    check("/v1/chat?alt=sse", json!({"a": 1}), true);
    check("/v1/chat?alt=json&key=[redacted]", json!({"a": 1}), false);
    check("/v1/chats?alt=sse&key=[redacted]", json!({"a": 1}), false);
    check("/v1/chat?alt=sse", json!({"a": 2}), false);
    let other_method = TapeRequest { method: "PUT".to_owned(), ..one.clone() };
    let other_headers =
        TapeRequest { headers: [("accept".to_owned(), "x".to_owned())].into(), ..one.clone() };
    assert!(!same(&one, &other_method) && same(&one, &other_headers));
}

#[test]
fn the_last_bit_of_a_fraction_does_not_count() {
    let check =
        |one: Value, other: Value, expected: bool| assert_eq!(alike(&one, &other), expected, "{one} {other}");
    check(json!({"t": [0.1]}), json!({"t": [0.1_f64.next_up()]}), true);
    check(json!({"t": [0.1]}), json!({"t": [0.100_000_1]}), false);
    check(json!({"t": [0.1]}), json!({"t": [0.1, 0.1]}), false);
    check(json!({"t": 0.1}), json!({"u": 0.1}), false);
    check(json!(u64::MAX), json!(u64::MAX - 1), false);
    check(json!(1), json!("1"), false);
}
