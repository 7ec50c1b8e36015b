//! Pairs of bodies, and their differences.

use serde_json::json;

use super::*;

fn check(recorded: Value, requested: Value, expected: &[&str]) {
    let with = |body| TapeRequest {
        method: "POST".into(),
        path: "/".into(),
        headers: [].into(),
        body: Some(Body::Json(body)),
    };
    let found: Vec<_> =
        differences(&with(recorded), &with(requested)).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn each_place_is_named_with_both_values() {
    check(json!({"a": 1}), json!({"a": 1}), &[]);
    check(
        json!({"a": 1, "b": "x"}),
        json!({"a": 2, "b": "y"}),
        &["/a: recorded 1, requested 2", r#"/b: recorded "x", requested "y""#],
    );
    check(
        json!({"a": [1, {"b": null}]}),
        json!({"a": [1, {"b": false}, 3]}),
        &["/a/1/b: recorded null, requested false", "/a/2: recorded nothing, requested 3"],
    );
    check(json!({"a/b": {"~": 1}}), json!({"a/b": {}}), &["/a~1b/~0: recorded 1, requested nothing"]);
    check(json!({"a": {}}), json!({"a": []}), &["/a: recorded {}, requested []"]);
    check(json!("a"), json!(["a"]), &[r#"the body: recorded "a", requested ["a"]"#]);
}

#[test]
fn long_texts_are_shown_where_they_part() {
    let text = |end: &str| json!({"t": format!("{} in {end} — and {}", "What is the weather".repeat(9), "more ".repeat(30))});
    check(
        text("Paris"),
        text("Rome"),
        &[
            r#"/t: recorded "… weather in Paris — and more more more m…", requested "… weather in Rome — and more more more mo…""#,
        ],
    );
    check(
        json!("x".repeat(100)),
        json!(1),
        &[&format!("the body: recorded \"{}…\", requested 1", "x".repeat(40))],
    );
    check(json!({"t": "größe"}), json!({"t": "grösse"}), &[r#"/t: recorded "größe", requested "grösse""#]);
}

#[test]
fn the_query_counts_and_a_body_need_not_be_json() {
    let with = |path: &str, body: Option<&str>| TapeRequest {
        method: "GET".into(),
        path: path.into(),
        headers: [].into(),
        body: body.map(|body| Body::Text(body.into())),
    };
    let found = differences(&with("/a?x=1&key=[redacted]", None), &with("/a?x=2", Some("plain")));
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [r#"the query: recorded "x=1", requested "x=2""#, r#"the body: recorded nothing, requested "plain""#]
    );
}
