//! What the vendor wants back with a block, under its name: a conversation may come from several
//! vendors.

use mainstem_message::Opaque;
use serde_json::json;

/// The one key that is ours.
const VENDOR: &str = "anthropic";

/// The signature of a thinking block.
pub(crate) const SIGNATURE: &str = "signature";

/// The encrypted content of a redacted thinking block.
pub(crate) const REDACTED: &str = "redacted";

/// Something to keep; nothing where there is nothing.
pub(crate) fn keep(name: &str, value: &str) -> Opaque {
    let kept = (!value.is_empty()).then(|| (VENDOR.to_owned(), json!({ name: value })));
    kept.into_iter().collect()
}

/// Returns what was kept under this name.
pub(crate) fn kept<'a>(opaque: &'a Opaque, name: &str) -> Option<&'a str> {
    opaque.get(VENDOR)?.get(name)?.as_str()
}
