//! Storing and reading, and the opaque fields of other vendors.

use serde_json::json;

use super::*;

#[test]
fn what_is_kept_comes_back() {
    let check = |kept: fn() -> Stored<'static>, expected: Value| {
        let opaque = kept().into_opaque();
        assert_eq!(Value::Object(opaque.clone()), expected);
        assert_eq!(Stored::of(&opaque), kept());
    };
    check(Stored::default, json!({}));
    check(
        || Stored { thought_signature: Some("s"), ..Stored::default() },
        json!({ "gemini": { "thoughtSignature": "s" } }),
    );
    check(
        || Stored {
            id: Some("c"),
            thought_signature: Some("s"),
            thought: true,
            from: 7,
            part: Map::default(),
        },
        json!({ "gemini": { "id": "c", "thoughtSignature": "s", "thought": true, "from": 7 } }),
    );
}

#[test]
fn what_another_vendor_keeps_is_not_ours() {
    for other in [
        json!({ "anthropic": { "thoughtSignature": "s" } }),
        json!({ "gemini": 1 }),
        json!({ "gemini": { "id": 1 } }),
    ] {
        assert_eq!(Stored::of(other.as_object().unwrap()), Stored::default());
    }
}
