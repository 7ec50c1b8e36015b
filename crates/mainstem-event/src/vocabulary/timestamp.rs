//! Points in time.

use std::{
    fmt,
    str::FromStr,
    time::{Duration, UNIX_EPOCH},
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A point in time, in whole microseconds UTC; RFC 3339 on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Creates a timestamp from microseconds since 1970-01-01T00:00:00Z.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the whole milliseconds since `earlier`; 0 if the clock went back.
    pub fn millis_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / 1000
    }

    /// Returns the time `wait` later, at most the latest representable one.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // RFC 3339 ends with the year 9999.
        let micros = self.0.min(253_402_300_799_999_999);
        humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_micros(micros)).fmt(f)
    }
}

/// Why a text is not a point in time.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TimestampError(humantime::TimestampError);

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = humantime::parse_rfc3339(text).map_err(TimestampError)?;
        Ok(Self(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(|error| D::Error::custom(format_args!("not an RFC 3339 time {text:?}: {error}")))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time", "description": "UTC, with microseconds" })
    }
}

#[cfg(test)]
mod tests;
