//! Sources of time and ids, which tests replace.

use std::{
    fmt,
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A point in time, in whole microseconds UTC; RFC 3339 on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// A source of time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time, which need not be monotonic.
    fn now(&self) -> Timestamp;
}

/// A source of unique ids.
pub trait Ids: Send + Sync + 'static {
    /// Returns a new id that begins with `prefix`: `run-`, `agent:reviewer:`.
    fn next(&self, prefix: &str) -> String;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// Random ids: UUID version 7, which sort by time (RFC 9562).
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(since.as_micros() as u64)
    }
}

impl Ids for RandomIds {
    fn next(&self, prefix: &str) -> String {
        [prefix, uuid::Uuid::now_v7().hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer())].concat()
    }
}

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

impl FromStr for Timestamp {
    type Err = humantime::TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = humantime::parse_rfc3339(text)?;
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
