//! What the vendor needs back with a block, under its name: a conversation may come from several
//! vendors.

use mainstem_message::Opaque;
use serde_json::json;

/// The key of this crate in the opaque fields.
const VENDOR: &str = "anthropic";

/// The signature of a thinking block.
pub(crate) const SIGNATURE: &str = "signature";

/// The encrypted content of a redacted thinking block.
pub(crate) const REDACTED: &str = "redacted";

/// A block of one of the vendor's own tools, as JSON.
pub(crate) const SERVER: &str = "server";

/// Returns a value as opaque fields; empty without a value.
pub(crate) fn store(name: &str, value: &str) -> Opaque {
    let kept = (!value.is_empty()).then(|| (VENDOR.to_owned(), json!({ name: value })));
    kept.into_iter().collect()
}

/// Returns the value that is stored under this name.
pub(crate) fn stored<'a>(opaque: &'a Opaque, name: &str) -> Option<&'a str> {
    opaque.get(VENDOR)?.get(name)?.as_str()
}
