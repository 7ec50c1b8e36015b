//! What can be wrong with a cassette, and with what was asked of it.

use std::{error::Error, io, path::PathBuf};

use thiserror::Error;

/// Why there is no cassette, or why its end is not a good one. Secrets are never shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// The mode is none.
    #[error("MAINSTEM_CASSETTE is {value:?}; it must be auto, record, replay or off")]
    Mode {
        /// What it is.
        value: String,
    },
    /// The vendor's address.
    #[error("the vendor's server: {problem}")]
    Upstream {
        /// What is wrong with it.
        problem: String,
    },
    /// What to leave out of bodies.
    #[error("{pointer:?} is no JSON pointer: it must begin with a slash, such as \"/metadata/user_id\"")]
    Pointer {
        /// As it was given.
        pointer: String,
    },
    /// There is nothing to play.
    #[error("there is no tape {}; record one with MAINSTEM_CASSETTE=record", .path.display())]
    NoTape {
        /// Where it should be.
        path: PathBuf,
    },
    /// The tape can't be read.
    #[error("the tape {} can't be read", .path.display())]
    Read {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The tape is not one.
    #[error("{}:{line}:{column}: {problem}", .path.display())]
    Format {
        /// Where it is.
        path: PathBuf,
        /// The line in it, from 1.
        line: usize,
        /// The column in that, from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// The cassette can't serve, or can't ask.
    #[error("the cassette can't work")]
    Start(#[source] Box<dyn Error + Send + Sync>),
    /// The tape can't be written.
    #[error("the tape {} can't be written", .path.display())]
    Write {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something that must not be seen would be on the tape, so it was not written.
    #[error(
        "the tape {} is not written: line {line} would hold a secret after all have been replaced; is a value to redact so short that it is \
         part of other words?", .path.display()
    )]
    Secret {
        /// Where it would have been.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// Not what a tape is for.
    #[error("the tape {} can't hold {what}", .path.display())]
    Unfit {
        /// Where it is.
        path: PathBuf,
        /// What was not recorded, and why.
        what: String,
    },
    /// Something was asked that is not on the tape.
    #[error("{}", .misses.join("\n"))]
    Missed {
        /// What was asked, each with how it differs from what is there.
        misses: Vec<String>,
    },
    /// Something is on the tape that nobody asked for.
    #[error(
        "nobody asked for what is on the tape {}: {}; record it anew with MAINSTEM_CASSETTE=record, or allow it with \
         `CassetteBuilder::may_leave_rest`", .path.display(), .requests.join(", ")
    )]
    Rest {
        /// Where it is.
        path: PathBuf,
        /// The requests, each with its line.
        requests: Vec<String>,
    },
}
