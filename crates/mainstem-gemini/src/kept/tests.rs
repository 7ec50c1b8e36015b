//! There and back, and what others left.

use serde_json::json;

use super::*;

#[test]
fn what_is_kept_comes_back() {
    let check = |kept: fn() -> Kept<'static>, expected: Value| {
        let opaque = kept().into_opaque();
        assert_eq!(Value::Object(opaque.clone()), expected);
        assert_eq!(Kept::of(&opaque), kept());
    };
    check(Kept::default, json!({}));
    check(
        || Kept { thought_signature: Some("s"), ..Kept::default() },
        json!({ "gemini": { "thoughtSignature": "s" } }),
    );
    check(
        || Kept { id: Some("c"), thought_signature: Some("s"), thought: true, from: 7 },
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
        assert_eq!(Kept::of(other.as_object().unwrap()), Kept::default());
    }
}
