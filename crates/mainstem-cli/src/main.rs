//! The `mainstem` binary.

fn main() {}
