//! A place in the tree and what is wrong there.

use std::fmt;

use anyhow::{Result, bail};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    path: String,
    line: usize,
    message: String,
}

impl Problem {
    /// Creates a problem at a line, counted from 1.
    pub(crate) fn at(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }

    /// Creates a problem of the file as a whole.
    pub(crate) fn file(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::at(path, 1, message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Prints every problem and fails if there is one; `remedy` ends the error.
pub(crate) fn report(problems: &[Problem], remedy: &str) -> Result<()> {
    for problem in problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        1 => bail!("1 problem; {remedy}"),
        count => bail!("{count} problems; {remedy}"),
    }
}
