//! Facade: Harness, prelude, re-exports.
