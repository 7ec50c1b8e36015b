//! Every kind of content, and what a model reads of it.

use serde_json::json;

use super::*;

#[track_caller]
fn check(result: serde_json::Value, expected: &str) {
    let result: CallToolResult = serde_json::from_value(result).unwrap();
    let (content, state) = output(result).into_parts();
    let said: Vec<_> = content
        .iter()
        .map(|block| match block {
            ContentBlock::Text { text, .. } => format!("{text:?}"),
            ContentBlock::Data { media_type, source: DataSource::Base64(data), .. } => {
                format!("{media_type}={data}")
            }
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(format!("{} {}", state.as_str(), said.join(" ")), expected);
}

#[test]
fn content_is_what_the_server_said() {
    let text = |text: &str| json!({"type": "text", "text": text});
    check(json!({"content": [text("4")]}), r#"success "4""#);
    check(json!({"content": [text("no such city")], "isError": true}), r#"error "no such city""#);
    check(json!({"content": [text("a"), text("b\n"), text("c")]}), r#"success "a\n" "b\n" "c""#);
    check(
        json!({"content": [text("see"), {"type": "image", "data": "iVBO", "mimeType": "image/png"}]}),
        r#"success "see" image/png=iVBO"#,
    );
    check(
        json!({"content": [{"type": "audio", "data": "UklG", "mimeType": "audio/wav"}]}),
        "success audio/wav=UklG",
    );
    let text_resource = json!({"uri": "file:///a.txt", "mimeType": "text/plain", "text": "hi"});
    check(
        json!({"content": [{"type": "resource", "resource": text_resource}]}),
        r#"success "file:///a.txt:\nhi""#,
    );
    let blob = json!({"uri": "file:///a.bin", "blob": "AAAA"});
    check(
        json!({"content": [{"type": "resource", "resource": blob}]}),
        "success application/octet-stream=AAAA",
    );
    let link = json!({"type": "resource_link", "uri": "file:///b", "name": "b", "description": "the other"});
    check(json!({"content": [link]}), r#"success "b file:///b the other""#);
    check(json!({"content": [], "structuredContent": {"sum": 4}}), r#"success "{\"sum\":4}""#);
    check(json!({"content": [text("4")], "structuredContent": {"sum": 4}}), r#"success "4""#);
}
