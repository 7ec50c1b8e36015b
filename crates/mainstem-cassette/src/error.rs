//! Errors of a cassette.

use std::{error::Error, io, path::PathBuf};

use thiserror::Error;

/// Why a cassette can't be opened, or did not end well. Secrets are never shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// The mode is not valid.
    #[error("MAINSTEM_CASSETTE is {value:?}; it must be auto, record, replay or off")]
    #[non_exhaustive]
    Mode {
        /// The value of the variable.
        value: String,
    },
    /// The vendor's URL is not valid.
    #[error("the vendor's server: {problem}")]
    #[non_exhaustive]
    Upstream {
        /// What is wrong with it.
        problem: String,
    },
    /// An ignored place is not a JSON pointer.
    #[error("{pointer:?} is not a JSON pointer: it must begin with a slash, such as \"/metadata/user_id\"")]
    #[non_exhaustive]
    Pointer {
        /// The text.
        pointer: String,
    },
    /// The tape does not exist.
    #[error("there is no tape {}; record one with MAINSTEM_CASSETTE=record", .path.display())]
    #[non_exhaustive]
    NoTape {
        /// Its path.
        path: PathBuf,
    },
    /// The tape can't be read.
    #[error("the tape {} can't be read", .path.display())]
    #[non_exhaustive]
    Read {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The tape is not valid.
    #[error("{}:{line}:{column}: {problem}", .path.display())]
    #[non_exhaustive]
    Format {
        /// Its path.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The problem.
        problem: String,
    },
    /// The cassette can't serve, or can't send requests.
    #[error("the cassette can't work")]
    Start(#[source] Box<dyn Error + Send + Sync>),
    /// The tape can't be written.
    #[error("the tape {} can't be written", .path.display())]
    #[non_exhaustive]
    Write {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The tape would contain a secret, so it was not written.
    #[error(
        "the tape {} is not written: line {line} would hold a secret after all have been replaced; is a value to redact so short that it is \
         part of other words?", .path.display()
    )]
    #[non_exhaustive]
    Secret {
        /// Its path.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// A response can't be recorded.
    #[error("the tape {} can't hold {what}", .path.display())]
    #[non_exhaustive]
    Unfit {
        /// The path of the tape.
        path: PathBuf,
        /// What was not recorded, and why.
        what: String,
    },
    /// A request is not on the tape.
    #[error("{}", .misses.join("\n"))]
    #[non_exhaustive]
    Missed {
        /// The requests, each with its difference from the nearest one on the tape.
        misses: Vec<String>,
    },
    /// A response on the tape was not used.
    #[error(
        "the tape {} has unused responses: {}; record it anew with MAINSTEM_CASSETTE=record, or allow it with \
         `CassetteBuilder::with_unused_allowed`", .path.display(), .requests.join(", ")
    )]
    #[non_exhaustive]
    Unused {
        /// The path of the tape.
        path: PathBuf,
        /// The requests, each with its line.
        requests: Vec<String>,
    },
}
