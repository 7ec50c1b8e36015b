//! Values that convert to outputs.

use std::collections::HashMap;

use serde_json::json;

use super::*;

#[track_caller]
fn check(output: impl Into<ToolOutput>, state: ToolState, text: &str) {
    let (content, is) = output.into().into_parts();
    let said: String = content.iter().filter_map(ContentBlock::as_text).collect();
    assert_eq!((is, &*said), (state, text));
}

#[test]
fn text_blocks_json_and_nothing_are_answers() {
    use ToolState::{Denied, Error, Success};
    check("found", Success, "found");
    check("found".to_owned(), Success, "found");
    check(ContentBlock::text("found"), Success, "found");
    check(ToolOutput::new(vec![ContentBlock::text("a"), ContentBlock::text("b")]), Success, "ab");
    check(ToolOutput::failed("no luck"), Error, "no luck");
    check(ToolOutput::from("no").with_state(Denied), Denied, "no");
    check(Json(json!({ "b": 1, "a": [null, "ü"] })), Success, r#"{"b":1,"a":[null,"ü"]}"#);
    check(Json(None::<u8>), Success, "null");
    assert_eq!(ToolOutput::from(()).into_parts().0, []);
    assert_eq!(ToolOutput::empty(), ToolOutput::from(()));
}

#[test]
fn what_cannot_be_json_is_a_failure() {
    check(Json(HashMap::from([((1, 2), 3)])), ToolState::Error, "key must be a string");
}
