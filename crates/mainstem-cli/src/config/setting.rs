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
        BoolValueParser, PathBufValueParser, PossibleValue, StringValueParser, TypedValueParser,
        ValueParserFactory,
    },
    value_parser,
};
use mainstem::{
    guard::Network,
    mcp::Server,
    policy::{Cost, Prices},
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

impl Value for String {}
impl Value for bool {}
impl Value for u16 {}
impl Value for u64 {}
impl Value for usize {}
impl Value for NonZeroU32 {}
impl Value for NonZeroUsize {}
impl Value for Duration {}
impl Value for Cost {}
impl Value for Network {}
impl Value for Prices {}

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

/// A value that a flag can have.
pub(crate) trait FlagValue: Value + Clone + Send + Sync + 'static {
    fn parser() -> impl TypedValueParser<Value = Self>;
}

impl FlagValue for String {
    fn parser() -> impl TypedValueParser<Value = Self> {
        StringValueParser::new()
    }
}

impl FlagValue for PathBuf {
    fn parser() -> impl TypedValueParser<Value = Self> {
        PathBufValueParser::new()
    }
}

impl FlagValue for u16 {
    fn parser() -> impl TypedValueParser<Value = Self> {
        value_parser!(u16)
    }
}

impl FlagValue for u64 {
    fn parser() -> impl TypedValueParser<Value = Self> {
        value_parser!(u64)
    }
}

impl FlagValue for usize {
    fn parser() -> impl TypedValueParser<Value = Self> {
        text::number::<usize>
    }
}

impl FlagValue for NonZeroU32 {
    fn parser() -> impl TypedValueParser<Value = Self> {
        text::positive::<NonZeroU32>
    }
}

impl FlagValue for NonZeroUsize {
    fn parser() -> impl TypedValueParser<Value = Self> {
        text::positive::<NonZeroUsize>
    }
}

impl FlagValue for Duration {
    fn parser() -> impl TypedValueParser<Value = Self> {
        text::duration
    }
}

impl FlagValue for Cost {
    fn parser() -> impl TypedValueParser<Value = Self> {
        text::dollars
    }
}

impl FlagValue for Network {
    fn parser() -> impl TypedValueParser<Value = Self> {
        let on = PossibleValue::new("on").help("The network of this machine");
        let off = PossibleValue::new("off").help("No network, the loopback included");
        let names = clap::builder::PossibleValuesParser::new([on, off]);
        names.map(|name| if name == "off" { Self::Off } else { Self::On })
    }
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
fn flag(arg: Option<&Arg>) -> String {
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

/// On, off or unset. A flag turns it on, or off if its name begins with `--no-`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Switch(Option<Setting<bool>>);

impl Switch {
    /// Returns where it was turned on, if it is on.
    pub(crate) fn on(&self) -> Option<&str> {
        self.0.as_ref().filter(|setting| setting.value).map(|setting| &*setting.origin)
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on().is_some()
    }

    pub(crate) fn is_off(&self) -> bool {
        self.state() == Some(false)
    }
}

/// Something that is on, off or unset.
pub(super) trait OnOff {
    fn state(&self) -> Option<bool>;
}

impl OnOff for Switch {
    fn state(&self) -> Option<bool> {
        value(&self.0)
    }
}

impl fmt::Display for Switch {
    /// Writes `true` or `false` with the origin in brackets, or `-`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(setting) => write!(f, "{setting}"),
            None => f.write_str("-"),
        }
    }
}

impl OnOff for Option<Setting<Network>> {
    fn state(&self) -> Option<bool> {
        value(self).map(|network| network == Network::On)
    }
}

impl Layered for Switch {
    fn or(self, below: Self) -> Self {
        Self(self.0.or(below.0))
    }

    fn locate(&mut self, file: &Location<'_>) {
        self.0.locate(file);
    }
}

/// The parser of a switch's flag, which has no value.
#[derive(Clone)]
pub(crate) struct SwitchParser;

impl ValueParserFactory for Switch {
    type Parser = SwitchParser;

    fn value_parser() -> SwitchParser {
        SwitchParser
    }
}

impl TypedValueParser for SwitchParser {
    type Value = Switch;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Switch, Error> {
        let is_given = BoolValueParser::new().parse_ref(command, arg, value)?;
        let flag = flag(arg);
        let setting = Setting::new(!flag.starts_with("--no-"), flag);
        Ok(Switch(is_given.then_some(setting)))
    }
}
