//! The test suite: once with everything, and the timelines again and again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use crate::built::Program;
use crate::cargo::{cargo, has, program, run as exec};

/// The binaries of timelines, and how often each runs: often enough to detect a random order. What
/// goes over HTTP takes half of the time of one run.
const TIMELINES: [(&str, usize); 2] = [("it", 20), ("remote", 3)];

/// Properties of random fleets: their cases come from a seed, so that they differ from run to run
/// anyway, and they take a third of the time.
const PROPERTIES: &str = "laws_hold_";

/// Set for tests whose loops are sampled without it.
pub(crate) const SLOW: &str = "RUN_SLOW_TESTS";

/// Runs every test and returns the snapshot files that they read.
pub(crate) fn run(root: &Path, slow: bool) -> Result<BTreeSet<PathBuf>> {
    let tests: &[&str] = if has(root, "nextest") { &["nextest", "run"] } else { &["test"] };
    let read = tempfile::NamedTempFile::new()?;
    let mut command = cargo(root, tests);
    command.args(["--workspace", "--locked"]);
    if !slow && tests.contains(&"nextest") {
        // A step of its own runs a sample.
        command.args(["-E", "not (package(mainstem-tests) & binary(suite))"]);
    }
    command.env("INSTA_UPDATE", "no").env("INSTA_SNAPSHOT_REFERENCES_FILE", read.path());
    if slow {
        command.env(SLOW, "1");
    }
    exec(&mut command)?;
    let read = fs::read_to_string(read.path())?;
    read.lines().map(|path| fs::canonicalize(path).with_context(|| path.to_owned())).collect()
}

/// Set for the sample of the checker, whose servers have leases that are too short for a machine
/// that does other work.
const CHECK: &str = "MAINSTEM_CHECK";

/// The modules of the suite that run against three servers without `--slow`.
const SAMPLE: [&str; 3] = ["steer::", "streams::", "kept::"];

/// Runs the sample of the checker of many nodes, alone, and that of the suite of one server.
pub(crate) fn nodes(root: &Path) -> Result<()> {
    exec(&mut checker(root))?;
    let mut suite = of_nodes(root, "suite");
    if !has(root, "nextest") {
        suite.arg("--");
    }
    exec(suite.args(SAMPLE))
}

/// Runs the whole checker of many nodes, alone and optimised: otherwise 200 clients use up two
/// processors, and what they wait for is the machine.
pub(crate) fn whole_checker(root: &Path) -> Result<()> {
    exec(checker(root).arg("--release").env(SLOW, "1"))
}

/// Returns the command of the sample of the checker of many nodes.
pub(crate) fn checker(root: &Path) -> Command {
    let mut checker = of_nodes(root, "nodes");
    checker.arg("checker").env(CHECK, "1");
    checker
}

fn of_nodes(root: &Path, binary: &str) -> Command {
    let tests: &[&str] = if has(root, "nextest") { &["nextest", "run"] } else { &["test"] };
    let mut command = cargo(root, tests);
    command.args(["-p", "mainstem-tests", "--test", binary, "--locked"]);
    command
}

/// Runs the test in which one tenant attacks another, in full and optimised: only there its bound
/// holds.
pub(crate) fn neighbour(root: &Path) -> Result<()> {
    let mut command =
        cargo(root, &["test", "--release", "--locked", "-p", "mainstem-server", "--test", "soak"]);
    exec(command.args(["neighbour", "--", "--nocapture"]).env(SLOW, "1"))
}

/// Runs the timelines, two runs at a time, and prints the closing line of the last of each binary.
/// One alone leaves a processor idle while its longest test runs.
pub(crate) fn timelines(root: &Path) -> Result<()> {
    for (name, runs) in TIMELINES {
        let timelines = Program { package: "tests", kind: "test", name, by: ["--test", name] };
        repeat(&root.join("tests"), &timelines.build(root)?, name, runs)?;
    }
    Ok(())
}

fn repeat(folder: &Path, binary: &Path, name: &str, runs: usize) -> Result<()> {
    let next = AtomicUsize::new(1);
    let work = || -> Result<Option<String>> {
        let mut closing = None;
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run > runs {
                return Ok(closing);
            }
            let ran = run_once(folder, binary);
            closing = Some(ran.with_context(|| format!("run {run} of {runs} of `{name}` failed"))?);
        }
    };
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(work);
        (work(), other.join())
    });
    let other = other.map_err(|_| anyhow!("a thread that runs the timelines panicked"))??;
    let closing = one?.or(other).context("no run")?;
    println!("{runs} runs of `{name}` passed, the last with\n{closing}");
    Ok(())
}

/// Names the folder in which tests keep the timelines that they check.
pub(crate) const TIMELINES_FOLDER: &str = "MAINSTEM_TIMELINES";

/// Keeps the timelines of the tests, and some of random fleets, in a folder.
pub(crate) fn keep(root: &Path, folder: &Path) -> Result<()> {
    let (name, _) = TIMELINES[0];
    let timelines = Program { package: "tests", kind: "test", name, by: ["--test", name] };
    let mut command = program(&root.join("tests"), &timelines.build(root)?);
    closing_line(command.env(TIMELINES_FOLDER, folder).env("CARGO_MANIFEST_DIR", root.join("tests")))
        .map(drop)
}

/// Runs the timelines of a binary and returns the closing line.
fn run_once(folder: &Path, binary: &Path) -> Result<String> {
    let mut command = program(folder, binary);
    closing_line(command.args(["--skip", PROPERTIES]).env("CARGO_MANIFEST_DIR", folder))
}

/// Runs tests and returns the closing line.
fn closing_line(tests: &mut Command) -> Result<String> {
    let output = tests.env("INSTA_UPDATE", "no").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
        bail!("{}", output.status);
    }
    let closing = text.lines().rev().find(|line| line.starts_with("test result:"));
    closing.map(String::from).context("no test ran")
}
