//! When a job is due again.

use std::{fmt, str::FromStr};

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use mainstem_event::Timestamp;

/// Times that come again and again: minute, hour, day of the month, month, day of the week, and a
/// time zone of the [IANA database](https://www.iana.org/time-zones), UTC by default. The names of
/// time zones are those that the machine knows (`/usr/share/zoneinfo`).
///
/// A time that the clock skips when summer begins does not come on that day, and one that comes
/// twice when summer ends is due twice.
///
/// ```
/// use mainstem_journal::Cron;
///
/// let daily: Cron = "30 7 * * MON-FRI".parse()?;
/// let now = "2026-11-27T08:00:00Z".parse()?;
/// assert_eq!(daily.next_after(now), Some("2026-11-30T07:30:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cron(Crontab);

/// Why a text is not a [`Cron`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a cron expression: {why}")]
pub struct CronError {
    text: String,
    why: String,
}

impl CronError {
    /// A time that never comes, such as 30 February.
    pub(super) fn never(text: &str) -> Self {
        Self { text: text.to_owned(), why: "that time never comes".to_owned() }
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let parsed = cronexpr::parse_crontab_with(text, options);
        parsed.map(Self).map_err(|error| CronError { text: text.to_owned(), why: error.to_string() })
    }
}

impl Cron {
    /// Returns the first of its times after `now`; `None` if there is none in the years that a
    /// calendar has.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let now = i64::try_from(now.as_micros()).ok()?;
        let now = jiff::Timestamp::from_microsecond(now).ok()?;
        let next = self.0.find_next(MakeTimestamp(now)).ok()?;
        u64::try_from(next.timestamp().as_microsecond()).ok().map(Timestamp::from_micros)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cron").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    //! Times, time zones, and texts that are not valid.

    use super::*;

    #[test]
    fn the_next_time_is_that_of_the_time_zone() {
        #[track_caller]
        fn check(cron: &str, now: &str, next: &str) {
            let cron: Cron = cron.parse().unwrap();
            assert_eq!(cron.next_after(now.parse().unwrap()), Some(next.parse().unwrap()));
        }
        check("* * * * *", "2026-11-26T12:00:00Z", "2026-11-26T12:01:00Z");
        check("* * * * *", "2026-11-26T12:00:00.000001Z", "2026-11-26T12:01:00Z");
        check("*/15 * * * *", "2026-11-26T12:46:00Z", "2026-11-26T13:00:00Z");
        check("0 0 1 1 *", "2026-11-26T12:00:00Z", "2027-01-01T00:00:00Z");
        check("0 9 * * MON-FRI", "2026-11-27T09:00:00Z", "2026-11-30T09:00:00Z");
        check("0 9 * * * Europe/Berlin", "2026-11-26T00:00:00Z", "2026-11-26T08:00:00Z");
        check("0 9 * * * Europe/Berlin", "2026-07-26T00:00:00Z", "2026-07-26T07:00:00Z");
        // Summer begins on 29 March 2026 at 02:00 and ends on 25 October at 03:00.
        check("30 2 * * * Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z");
        check("30 2 * * * Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z");
        check("30 2 * * * Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z");
    }

    #[test]
    fn a_text_that_is_no_time_says_why() {
        #[track_caller]
        fn check(text: &str, part: &str) {
            let error = text.parse::<Cron>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(&format!("`{text}`")), "{error}");
        }
        check("", "");
        check("daily", "");
        check("* * * *", "");
        check("60 * * * *", "60");
        check("0 9 * * * Mars/Olympus", "Mars/Olympus");
    }

    #[test]
    fn a_time_that_never_comes_has_no_next() {
        let cron: Cron = "0 0 30 2 *".parse().unwrap();
        assert_eq!(cron.next_after("2026-11-26T12:00:00Z".parse().unwrap()), None);
    }
}
