//! Reads an id from its text, without a copy in between.

use std::fmt;

use serde::de::{Error, Visitor};

use super::IdError;

pub(super) struct Text<T> {
    pub(super) kind: &'static str,
    pub(super) parse: fn(&str) -> Result<T, IdError>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as a string", self.kind)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}
