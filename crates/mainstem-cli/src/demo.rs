//! The demo: the real engine with a model that plays a script, which shows a fleet without a key.
//!
//! Its agents are those of `docs/examples/review`; its tools run on the change in that example.

mod script;
mod tools;

use std::path::Path;

use mainstem::{HarnessBuilder, prelude::ScriptedModel, spec};

/// The name that selects it.
pub(crate) const NAME: &str = "demo";

/// The default prompt.
pub(crate) const PROMPT: &str = "Review the discount change";

const MAIN: &str = include_str!("../demo/main.md");

const AGENTS: [(&str, &str); 4] = [
    ("main", MAIN),
    ("reviewer", include_str!("../demo/reviewer.md")),
    ("tester", include_str!("../demo/tester.md")),
    ("runner", include_str!("../demo/runner.md")),
];

/// Returns the model. `pace` is 1 for people, 0 for no pauses.
pub(crate) fn model(pace: f64) -> ScriptedModel {
    script::model(NAME, pace)
}

/// Adds the demo's agents and tools to a harness.
pub(crate) fn configure(harness: HarnessBuilder, pace: f64) -> HarnessBuilder {
    let harness = harness.with_tool(tools::read_diff(pace)).with_tool(tools::run_tests(pace));
    agents().into_iter().fold(harness, HarnessBuilder::with_subagent)
}

fn agents() -> Vec<spec::AgentSpec> {
    let parse = |(id, text): (&str, &str)| {
        let path = format!("docs/examples/review/subagents/{id}.md");
        // A test checks them; one that can't be read would be missing from the demo.
        spec::parse(id, text, Path::new(&path)).ok().map(|parsed| parsed.spec)
    };
    AGENTS.into_iter().filter_map(parse).collect()
}

/// Returns the example's change by file: its path, and its part of the diff.
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
