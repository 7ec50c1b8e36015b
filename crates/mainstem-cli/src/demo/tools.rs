//! The demo's tools, which read the example and change nothing.

use std::time::Duration;

use mainstem::tool::{Tool, ToolError, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

use super::change;

#[derive(Deserialize, JsonSchema)]
struct ReadDiff {
    /// The path of a changed file.
    file: String,
}

/// Returns one file's part of the change.
pub(super) fn read_diff(pace: f64) -> impl Tool {
    tool_fn(
        "read_diff",
        "Read what a change does to one file.",
        move |_, ReadDiff { file }: ReadDiff| async move {
            sleep(Duration::from_millis(700).mul_f64(pace)).await;
            let known: Vec<_> = change().iter().map(|(path, _)| *path).collect();
            let found = change().into_iter().find(|(path, _)| *path == file);
            let unknown =
                || ToolError::new(format!("{file:?} is not in the change; it has: {}", known.join(", ")));
            found.map(|(_, diff)| diff).ok_or_else(unknown)
        },
    )
    .with_read_only(true)
}

#[derive(Deserialize, JsonSchema)]
struct RunTests {
    /// A part of the names of the tests to run; empty for all.
    filter: String,
}

/// The example's tests, and the output of each.
const TESTS: [(&str, Result<(), &str>); 4] = [
    ("total_without_discount", Ok(())),
    ("total_with_one_discount", Ok(())),
    ("redeem_unknown_code", Ok(())),
    ("redeem_twice", Err("panicked at src/cart.rs:14: attempt to subtract with overflow")),
];

/// Runs the example's tests, one after the other.
pub(super) fn run_tests(pace: f64) -> impl Tool {
    let description = "Run the tests whose name contains the filter; replays their output.";
    tool_fn("run_tests", description, move |cx, RunTests { filter }: RunTests| async move {
        sleep(Duration::from_millis(500).mul_f64(pace)).await;
        let chosen: Vec<_> = TESTS.iter().filter(|(name, _)| name.contains(&filter)).collect();
        if chosen.is_empty() {
            let known = TESTS.map(|(name, _)| name).join(", ");
            return Err(ToolError::new(format!("no test's name contains {filter:?}; there are: {known}")));
        }
        for (name, result) in &chosen {
            sleep(Duration::from_millis(500).mul_f64(pace)).await;
            let result = result.map_or_else(|why| format!("FAILED: {why}"), |()| "ok".to_owned());
            cx.progress(format!("test {name} ... {result}\n")).await;
        }
        let failed = chosen.iter().filter(|(_, result)| result.is_err()).count();
        Ok(format!("{} passed, {failed} failed", chosen.len() - failed))
    })
    .with_read_only(true)
}
