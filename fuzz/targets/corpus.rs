//! The checked-in inputs, and how long random edits of them are tried.

use std::{fs, path::Path, time::Duration};

use crate::input::{Input, PIECES};

/// No input may take longer to read; the largest are some 100 KB.
const SLOWEST: Duration = Duration::from_secs(5);

/// A target's corpus in the order of its file names.
pub(crate) fn read(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no files", folder.display());
    paths.into_iter().map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
}

/// Checks each file whole, in two halves, and byte by byte, a large one in pieces of some bytes.
#[expect(clippy::print_stdout, reason = "the test that fails shows which file it was at")]
pub(crate) fn replay(corpus: &[(String, Vec<u8>)], check: impl Fn(&Input)) {
    for (name, bytes) in corpus {
        println!("{name}");
        for cuts in
            [vec![], vec![bytes.len() / 2], (1..bytes.len()).step_by(1 + bytes.len() / PIECES).collect()]
        {
            timed(&Input { bytes: bytes.clone(), cuts }, &check);
        }
    }
}

pub(crate) fn timed(input: &Input, check: impl Fn(&Input)) {
    let begun = std::time::Instant::now();
    check(input);
    let took = begun.elapsed();
    assert!(took < SLOWEST, "{} bytes took {took:?}", input.bytes.len());
}

fn is_slow() -> bool {
    std::env::var_os("RUN_SLOW_TESTS").is_some()
}

pub(crate) fn time() -> Duration {
    Duration::from_secs(if is_slow() { 60 } else { 1 })
}

pub(crate) fn iterations() -> usize {
    if is_slow() { usize::MAX } else { 2000 }
}
