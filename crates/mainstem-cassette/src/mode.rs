//! The mode of a cassette: replay, record, or both.

use std::{env, str::FromStr};

use crate::CassetteError;

/// The variable that sets the mode.
pub(super) const VARIABLE: &str = "MAINSTEM_CASSETTE";

/// The source of a [`Cassette`](crate::Cassette)'s responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "on or off, for playing and for recording")]
pub enum Mode {
    /// From the tape if it has them; otherwise from the vendor, onto the tape.
    #[default]
    Auto,
    /// All from the vendor, onto a new tape.
    Record,
    /// All from the tape. No connection is opened.
    Replay,
    /// All from the vendor. The tape is neither read nor written.
    Off,
}

impl Mode {
    /// Returns the mode that `MAINSTEM_CASSETTE` sets: `auto`, `record`, `replay` or `off`; `auto`
    /// if it is not set.
    ///
    /// # Errors
    /// If it has another value.
    pub fn from_env() -> Result<Self, CassetteError> {
        match env::var(VARIABLE) {
            Ok(value) if !value.trim().is_empty() => value.parse(),
            _ => Ok(Self::default()),
        }
    }

    /// Returns `true` if responses come from the tape.
    pub(super) fn can_play(self) -> bool {
        matches!(self, Self::Auto | Self::Replay)
    }

    /// Returns `true` if the vendor's responses are recorded.
    pub(super) fn can_record(self) -> bool {
        matches!(self, Self::Auto | Self::Record)
    }

    /// Returns `true` if requests may go to the vendor.
    pub(super) fn can_forward(self) -> bool {
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
