//! Who may know whom among the crates of this workspace. A new edge needs a file in docs/decisions.

use std::collections::BTreeSet;

use super::packages::{Dependency, Package};
use crate::problem::Problem;

/// The whole allowed set: a crate, and what it may depend on, both without `mainstem-`.
const ALLOWED: [(&str, &str); 48] = [
    ("message", ""),
    ("sse", ""),
    ("spec", ""),
    ("guard", ""),
    ("schema", ""),
    ("outbound", ""),
    ("policy", "message"),
    ("event", "message"),
    ("model", "message"),
    ("tool", "message event schema"),
    ("task", "message event"),
    ("journal", "message event"),
    ("postgres", "message event task journal"),
    ("api", "message event policy task"),
    ("client", "message event task api outbound"),
    ("encode", "message event sse"),
    ("a2a", "message event encode sse"),
    ("http", "model sse outbound"),
    ("cassette", "http model"),
    ("openai", "message model http"),
    ("anthropic", "message model http"),
    ("gemini", "message model http"),
    ("ollama", "message model http"),
    ("react", "message event model policy schema tool"),
    ("subagent", "message event model policy spec task tool react"),
    ("remote", "message event sse encode a2a api client outbound policy spec tool react subagent"),
    ("workspace", "message tool guard outbound"),
    ("mcp", "event api message tool outbound guard"),
    ("declarations", "message event model policy spec subagent"),
    ("session", "message event api model policy spec task tool journal react subagent"),
    (
        "mainstem",
        "message event declarations encode api client model policy schema spec task tool journal react remote subagent guard \
         workspace mcp http openai anthropic gemini ollama session",
    ),
    ("server", "mainstem a2a api outbound"),
    ("cli", "mainstem event server postgres"),
    ("testing", "message event model sse http task tool journal mainstem"),
    ("tests", "mainstem server a2a postgres"),
    ("layer-event", "event"),
    ("layer-sse", "sse"),
    ("layer-spec", "spec"),
    ("layer-model", "model"),
    ("layer-tool", "tool"),
    ("layer-react", "react"),
    ("layer-task", "task"),
    ("layer-journal", "journal"),
    ("layer-testing", ""),
    ("example-first", "mainstem testing"),
    ("fuzz", "mainstem server sse"),
    ("bench", "mainstem server message event model sse openai"),
    ("xtask", ""),
];

/// May be dev-dependencies of every crate, and nothing else of any.
const FOR_TESTS: [&str; 2] = ["mainstem-testing", "mainstem-cassette"];

pub(super) fn check(packages: &[Package]) -> Vec<Problem> {
    let ours: BTreeSet<_> = packages.iter().map(|package| package.name.as_str()).collect();
    packages.iter().flat_map(|package| of_package(package, &ours)).collect()
}

fn of_package(from: &Package, ours: &BTreeSet<&str>) -> Vec<Problem> {
    let problem =
        |name: &str, message: String| Problem::at(from.manifest_path(), from.line_of(name), message);
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == short(&from.name)) else {
        return vec![problem(&from.name, format!("{} is not in the table of edges", from.name))];
    };
    let edges = from.dependencies.iter().filter(|to| ours.contains(to.name.as_str()));
    edges.filter_map(|to| Some(problem(&to.name, objection(&from.name, to, allowed)?))).collect()
}

fn objection(from: &str, to: &Dependency, allowed: &str) -> Option<String> {
    let is_dev = to.kind.as_deref() == Some("dev");
    match to.name.as_str() {
        name if FOR_TESTS.contains(&name) && is_dev => None,
        name if FOR_TESTS.contains(&name) => Some(format!("{name} is a dev-dependency only")),
        to if allowed.split_whitespace().any(|name| name == short(to)) => None,
        to => Some(format!("{from} may not know {to}; a new edge needs a decision and a line in the table")),
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("mainstem-").unwrap_or(name)
}

#[cfg(test)]
mod tests;
