//! The cache of prompts.

use mainstem_model::PromptCache;
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

/// Returns the mark of a place in the prompt up to which it is cached; `None` if it is not.
pub(crate) fn breakpoint(cache: PromptCache) -> Option<Breakpoint> {
    match cache {
        PromptCache::Off => None,
        PromptCache::OneHour => Some(Breakpoint { ttl: Some("1h") }),
        _ => Some(Breakpoint { ttl: None }),
    }
}

/// A place in the prompt up to which it is cached: the end of the block that has it. A request may
/// have four.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Breakpoint {
    /// The default is five minutes.
    ttl: Option<&'static str>,
}

impl Serialize for Breakpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("type", "ephemeral")?;
        if let Some(ttl) = self.ttl {
            fields.serialize_entry("ttl", ttl)?;
        }
        fields.end()
    }
}

/// A block with a breakpoint at its end.
#[derive(Serialize)]
struct Marked<T> {
    #[serde(flatten)]
    block: T,
    cache_control: Breakpoint,
}

/// Writes blocks, with a breakpoint at the end of the last one.
pub(crate) fn marked<S: Serializer, T: Serialize>(
    serializer: S,
    blocks: impl ExactSizeIterator<Item = T>,
    breakpoint: Option<Breakpoint>,
) -> Result<S::Ok, S::Error> {
    let last = blocks.len().saturating_sub(1);
    let mut written = serializer.serialize_seq(Some(blocks.len()))?;
    for (number, block) in blocks.enumerate() {
        match breakpoint.filter(|_| number == last) {
            Some(cache_control) => written.serialize_element(&Marked { block, cache_control })?,
            None => written.serialize_element(&block)?,
        }
    }
    written.end()
}
