//! The cache of prompts.

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

/// How long the vendor [caches] the prompts of conversations after their last use.
///
/// Reading from the cache costs a tenth of the input or less, writing to it a quarter more. A
/// request is one of a conversation if it has a [`cache_key`], as those of agents have. The API's
/// automatic form, `cache_control` in the options' `extra`, replaces this setting.
///
/// [`cache_key`]: mainstem_model::ModelRequest::cache_key
/// [caches]: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptCaching {
    /// Every prompt is read anew.
    Off,
    /// Five minutes.
    #[default]
    FiveMinutes,
    /// An hour. Writing costs twice the input; the built-in prices are those of five minutes.
    OneHour,
}

impl PromptCaching {
    /// Returns the mark of a place in the prompt up to which it is cached.
    pub(crate) fn breakpoint(self) -> Option<Breakpoint> {
        match self {
            Self::Off => None,
            Self::FiveMinutes => Some(Breakpoint { ttl: None }),
            Self::OneHour => Some(Breakpoint { ttl: Some("1h") }),
        }
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
