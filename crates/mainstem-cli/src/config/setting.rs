//! A value with its origin, as flags and files write it.

use std::{
    ffi::OsStr,
    fmt,
    marker::PhantomData,
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{
    Arg, Command, Error,
    builder::{
        PathBufValueParser, PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser,
        ValueParserFactory,
    },
    value_parser,
};
use mainstem::{
    guard::Network,
    mcp::Server,
    model::{OnCut, PromptCache},
    policy::{ContextWindows, Cost, Prices},
    spec::Effort,
};
use serde::{Deserialize, Deserializer};

use super::{
    table::{Layered, Location},
    text,
};

/// A value, and where it was set, for messages about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    /// A flag, a variable, or the path of a file.
    pub(crate) origin: String,
}

impl<T> Setting<T> {
    pub(crate) fn new(value: T, origin: impl Into<String>) -> Self {
        Self { value, origin: origin.into() }
    }
}

/// Returns the value of a setting, if it is set.
pub(crate) fn value<T: Clone>(setting: &Option<Setting<T>>) -> Option<T> {
    setting.as_ref().map(|setting| setting.value.clone())
}

/// The value of a setting.
pub(crate) trait Value {
    /// Resolves paths relative to the folder of the file that has them.
    fn resolve(&mut self, _folder: &Path) {}
}

impl Value for bool {}
impl Value for Prices {}
impl Value for ContextWindows {}

impl Value for PathBuf {
    fn resolve(&mut self, folder: &Path) {
        *self = folder.join(&*self);
    }
}

impl Value for Server {
    fn resolve(&mut self, folder: &Path) {
        self.dir_mut().into_iter().for_each(|dir| dir.resolve(folder));
    }
}

/// The percentage of a context window above which a conversation is compacted; 0 for never.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "u64")]
pub(crate) struct CompactAt(pub(crate) u8);

impl TryFrom<u64> for CompactAt {
    type Error = String;

    fn try_from(percent: u64) -> Result<Self, String> {
        let allowed = u8::try_from(percent).ok().filter(|percent| matches!(percent, 0 | 10..=100));
        allowed.map(Self).ok_or_else(|| "must be in 10 to 100, or 0 for never".to_owned())
    }
}

/// A value that a flag can have.
pub(crate) trait FlagValue: Value + Clone + Send + Sync + 'static {
    fn parser() -> impl TypedValueParser<Value = Self>;
}

/// Implements [`FlagValue`], and [`Value`] for types without paths.
macro_rules! flag_values {
    ($($type:ty: $parser:expr;)*) => {$(
        impl Value for $type {}
        flag_values!(@ $type: $parser);
    )*};
    (@ $type:ty: $parser:expr) => {
        impl FlagValue for $type {
            fn parser() -> impl TypedValueParser<Value = Self> {
                $parser
            }
        }
    };
}

flag_values! {
    String: StringValueParser::new();
    u16: value_parser!(u16);
    u32: value_parser!(u32);
    u64: value_parser!(u64);
    usize: text::number::<usize>;
    NonZeroU32: text::positive::<NonZeroU32>;
    NonZeroUsize: text::positive::<NonZeroUsize>;
    Duration: text::duration;
    CompactAt: text::compact_at;
    Cost: text::dollars;
    Network: network();
    Effort: named(Effort::NAMES, Effort::None);
    OnCut: named(OnCut::NAMES, OnCut::Repeat);
    PromptCache: named(PromptCache::NAMES, PromptCache::FiveMinutes);
}

flag_values!(@ PathBuf: PathBufValueParser::new());

fn network() -> impl TypedValueParser<Value = Network> {
    let on = PossibleValue::new("on").help("The network of this machine");
    let off = PossibleValue::new("off").help("No network, the loopback included");
    PossibleValuesParser::new([on, off]).map(|name| if name == "off" { Network::Off } else { Network::On })
}

/// Returns the parser of a value that has a name.
fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [(&'static str, T); N],
    default: T,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(|(name, _)| name)).map(move |chosen| {
        let found = all.iter().find(|(name, _)| *name == chosen);
        found.map_or(default, |(_, value)| *value)
    })
}

/// The parser of a flag's value, which notes the flag as the origin.
#[derive(Clone)]
pub(crate) struct FlagParser<T>(PhantomData<T>);

impl<T: FlagValue> ValueParserFactory for Setting<T> {
    type Parser = FlagParser<T>;

    fn value_parser() -> FlagParser<T> {
        FlagParser(PhantomData)
    }
}

impl<T: FlagValue> TypedValueParser for FlagParser<T> {
    type Value = Setting<T>;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Setting<T>, Error> {
        Ok(Setting::new(T::parser().parse_ref(command, arg, value)?, flag(arg)))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values: Vec<_> = T::parser().possible_values()?.collect();
        Some(Box::new(values.into_iter()))
    }
}

/// Returns the flag as typed: `--model`.
pub(super) fn flag(arg: Option<&Arg>) -> String {
    let long = arg.and_then(Arg::get_long).unwrap_or_default();
    format!("--{long}")
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    /// Reads the value; [`Layered::locate`] sets the origin.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self::new(value, ""))
    }
}

impl<T: Value> Layered for Setting<T> {
    fn or(self, _below: Self) -> Self {
        self
    }

    fn locate(&mut self, file: &Location<'_>) {
        file.name.clone_into(&mut self.origin);
        self.value.resolve(file.folder);
    }
}

impl<T: fmt::Display> fmt::Display for Setting<T> {
    /// Writes the value with its origin in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.value, self.origin)
    }
}
