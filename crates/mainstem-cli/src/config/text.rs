//! Values as flags and files write them.

use std::{fmt::Display, num::NonZeroU64, str::FromStr, time::Duration};

use mainstem::policy::Cost;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{Setting, setting::CompactAt};

pub(crate) fn number<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Reads a whole number from 1.
pub(crate) fn positive<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    let is_zero = !text.is_empty() && text.bytes().all(|digit| digit == b'0');
    if is_zero { Err("must be at least 1".to_owned()) } else { number(text) }
}

/// Reads the percentage of a context window above which a conversation is compacted.
pub(crate) fn compact_at(text: &str) -> Result<CompactAt, String> {
    number::<u64>(text)?.try_into()
}

/// Reads a time such as `90s` or `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    use humantime::DurationError::UnknownUnit;
    humantime::parse_duration(text).map_err(|error| {
        let what = match error {
            UnknownUnit { unit, .. } if unit.is_empty() => "a unit is missing".to_owned(),
            UnknownUnit { unit, .. } => format!("unknown unit `{unit}`"),
            _ => "invalid time".to_owned(),
        };
        format!("{what}; write it like 90s, 5m or 1h 30m")
    })
}

/// Reads an amount of US dollars, exactly.
pub(crate) fn dollars(text: &str) -> Result<Cost, String> {
    let text = text.strip_prefix('$').unwrap_or(text);
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let micros = format!("{whole}{part:0<6}").parse().ok();
    micros
        .filter(|_| !whole.is_empty() && part.len() <= 6 && is_number(whole) && is_number(part))
        .map(Cost::from_micros)
        .ok_or_else(|| "expected an amount of dollars, such as 0.50".to_owned())
}

/// Reads a time of a file: `"90s"`, or a number of seconds.
pub(super) fn time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Setting<Duration>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a time, such as \"90s\" or a number of seconds")]
    enum Time {
        Seconds(NonZeroU64),
        Text(String),
    }
    let time = match Time::deserialize(deserializer)? {
        Time::Seconds(seconds) => Duration::from_secs(seconds.get()),
        Time::Text(text) => duration(&text).map_err(D::Error::custom)?,
    };
    Ok(Some(Setting::new(time, "")))
}

#[cfg(test)]
mod tests;
