//! The demo: the real engine on a model that plays a script, so that a newcomer without a key sees
//! a fleet at work.
//!
//! Its agents are those of `docs/examples/review`; its tools really work, on the change in that
//! example.

mod script;
mod tools;

use std::path::Path;

use mainstem::{HarnessBuilder, prelude::ScriptedModel, spec};

/// The name to choose it by.
pub(crate) const NAME: &str = "demo";

/// What it is asked if nothing else is said.
pub(crate) const PROMPT: &str = "Review the discount change";

const MAIN: &str = include_str!("../demo/main.md");

const AGENTS: [(&str, &str); 4] = [
    ("main", MAIN),
    ("reviewer", include_str!("../demo/reviewer.md")),
    ("tester", include_str!("../demo/tester.md")),
    ("runner", include_str!("../demo/runner.md")),
];

/// The model. `pace` is 1 for people, 0 for no pauses at all.
pub(crate) fn model(pace: f64) -> ScriptedModel {
    script::model(NAME, pace)
}

/// Gives a harness the demo's agents and tools.
pub(crate) fn furnish(harness: HarnessBuilder, pace: f64) -> HarnessBuilder {
    let harness = harness.with_tool(tools::read_diff(pace)).with_tool(tools::run_tests(pace));
    agents().into_iter().fold(harness, HarnessBuilder::with_subagent)
}

fn agents() -> Vec<spec::AgentSpec> {
    let parse = |(id, text): (&str, &str)| {
        let path = format!("docs/examples/review/subagents/{id}.md");
        // They are checked by a test; one that could not be read would be missing from the demo.
        spec::parse(id, text, Path::new(&path)).ok().map(|parsed| parsed.spec)
    };
    AGENTS.into_iter().filter_map(parse).collect()
}

/// The example's change, file by file: its path, its part of the diff.
fn change() -> Vec<(&'static str, &'static str)> {
    let diff = MAIN.split_once("```diff\n").and_then(|(_, rest)| rest.split_once("```"));
    let files = diff.map_or("", |(diff, _)| diff).split("--- ").filter(|part| !part.is_empty());
    files
        .filter_map(|part| {
            let path = part.lines().nth(1)?.strip_prefix("+++ b/")?;
            Some((path, part))
        })
        .collect()
}

#[cfg(test)]
mod tests;
