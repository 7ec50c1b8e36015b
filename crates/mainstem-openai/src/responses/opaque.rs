//! What the vendor needs back with a block, under its name in the block's opaque fields.
//!
//! | block | stored | sent back |
//! |---|---|---|
//! | thinking | the [reasoning item]: id, encrypted content, summary | the item as it was |
//! | thinking, empty | an item of one of the vendor's own tools | the item as it was |
//! | text | the [phase] of the message: commentary or final answer | the message's phase |
//!
//! [reasoning item]: https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items
//! [phase]: https://platform.openai.com/docs/api-reference/responses/create

use mainstem_message::Opaque;
use serde_json::{Map, Value};

const VENDOR: &str = "openai";

/// Returns a reasoning item that can be sent back; empty for one without encrypted content, because
/// the vendor does not store it under its id.
pub(super) fn reasoning(mut item: Map<String, Value>) -> Opaque {
    if !is_encrypted(&item) {
        return Opaque::new();
    }
    // The vendor sends a status, and refuses it in a request.
    item.remove("status");
    item.retain(|_, value| !value.is_null());
    under_vendor(item)
}

/// Returns an item of one of the vendor's own tools, which is sent back as it is.
pub(super) fn server_tool(item: Map<String, Value>) -> Opaque {
    under_vendor(item)
}

/// Returns `true` for the type of an item of one of the vendor's own tools.
pub(super) fn is_server_tool(kind: &str) -> bool {
    matches!(kind, "web_search_call" | "code_interpreter_call")
}

/// Returns the phase of a message, for models that have one.
pub(super) fn phase(phase: Option<&str>) -> Opaque {
    phase.map_or_else(Opaque::new, |phase| {
        under_vendor(Map::from_iter([("phase".to_owned(), Value::from(phase))]))
    })
}

/// Returns the reasoning item of a thinking block, if it is this vendor's.
pub(super) fn reasoning_of(opaque: &Opaque) -> Option<&Map<String, Value>> {
    of_vendor(opaque)
        .filter(|item| item.get("type").is_some_and(|kind| kind == "reasoning") && is_encrypted(item))
}

/// Returns the item of one of the vendor's own tools, if a block has one.
pub(super) fn server_tool_of(opaque: &Opaque) -> Option<&Map<String, Value>> {
    of_vendor(opaque).filter(|item| item.get("type").and_then(Value::as_str).is_some_and(is_server_tool))
}

/// Returns the phase of the message of a text block.
pub(super) fn phase_of(opaque: &Opaque) -> Option<&str> {
    of_vendor(opaque)?.get("phase")?.as_str()
}

fn is_encrypted(item: &Map<String, Value>) -> bool {
    item.get("encrypted_content").is_some_and(Value::is_string)
}

fn under_vendor(fields: Map<String, Value>) -> Opaque {
    Opaque::from_iter([(VENDOR.to_owned(), Value::Object(fields))])
}

fn of_vendor(opaque: &Opaque) -> Option<&Map<String, Value>> {
    opaque.get(VENDOR)?.as_object()
}
