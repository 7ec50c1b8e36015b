//! Settings that are on or off.

use std::{ffi::OsStr, fmt};

use clap::{
    Arg, Command, Error,
    builder::{BoolValueParser, TypedValueParser, ValueParserFactory},
};
use mainstem::{guard::Network, model::OnCut};
use serde::Deserialize;

use super::{
    Setting,
    setting::{flag, value},
    table::{Layered, Location},
};

/// On, off or unset. A flag turns it on, or off if its name begins with `--no-`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Switch(Option<Setting<bool>>);

impl Switch {
    /// Returns where it was turned on, if it is on.
    pub(crate) fn on(&self) -> Option<&str> {
        self.0.as_ref().filter(|setting| setting.value).map(|setting| &*setting.origin)
    }

    /// Returns where it was turned off, if it is off.
    pub(crate) fn off(&self) -> Option<&str> {
        self.0.as_ref().filter(|setting| !setting.value).map(|setting| &*setting.origin)
    }

    pub(super) fn setting(&self) -> &Option<Setting<bool>> {
        &self.0
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

/// On if the vendor is to store answers.
impl OnOff for Option<Setting<OnCut>> {
    fn state(&self) -> Option<bool> {
        value(self).map(|way| way == OnCut::Resume)
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
