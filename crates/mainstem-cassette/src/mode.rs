//! What a cassette does with a request: play, ask, or both.

use std::{env, str::FromStr};

use crate::CassetteError;

/// The variable that says it for those who do not say it in code.
pub(super) const VARIABLE: &str = "MAINSTEM_CASSETTE";

/// Where a [`Cassette`](crate::Cassette) has its answers from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "on or off, for playing and for recording")]
pub enum Mode {
    /// From the tape what is on it; the rest from the vendor, onto the tape.
    #[default]
    Auto,
    /// All from the vendor, onto a new tape.
    Record,
    /// All from the tape. No connection is opened to anywhere.
    Replay,
    /// All from the vendor. The tape is neither read nor written.
    Off,
}

impl Mode {
    /// As `MAINSTEM_CASSETTE` says: `auto`, `record`, `replay` or `off`; `auto` if it is not set.
    ///
    /// # Errors
    /// If it says something else.
    pub fn from_env() -> Result<Self, CassetteError> {
        match env::var(VARIABLE) {
            Ok(value) if !value.trim().is_empty() => value.parse(),
            _ => Ok(Self::default()),
        }
    }

    /// Returns `true` if what is on the tape is played.
    pub(super) fn plays(self) -> bool {
        matches!(self, Self::Auto | Self::Replay)
    }

    /// Returns `true` if the vendor's answers get onto the tape.
    pub(super) fn records(self) -> bool {
        matches!(self, Self::Auto | Self::Record)
    }

    /// Returns `true` if the vendor is asked at all.
    pub(super) fn asks(self) -> bool {
        self != Self::Replay
    }
}

impl FromStr for Mode {
    type Err = CassetteError;

    fn from_str(text: &str) -> Result<Self, CassetteError> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "record" => Ok(Self::Record),
            "replay" => Ok(Self::Replay),
            "off" => Ok(Self::Off),
            other => Err(CassetteError::Mode { value: other.to_owned() }),
        }
    }
}
