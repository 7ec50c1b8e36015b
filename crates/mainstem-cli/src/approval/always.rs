//! Patterns of calls that a person always allows: what is suggested for a call. Pure.

use mainstem::{message::ToolCall, policy::Pattern};
use serde_json::Value;

/// Programs whose first argument says what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "bundle",
    "cargo",
    "deno",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "pip",
    "pnpm",
    "poetry",
    "terraform",
    "uv",
    "yarn",
];

/// Calls whose approval is an answer to a question, so that each needs its own.
const QUESTIONS: [&str; 2] = ["plan_exit", "request_input"];

/// Returns the pattern to suggest for a call: the command, or the program with its subcommand; the
/// path; the server; or all calls of the tool. `None` if a pattern would allow more than that.
pub(super) fn suggested(call: &ToolCall) -> Option<Pattern> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let about = if let Some(command) = text("command") {
        Some(format!("command: {}", of_command(command)))
    } else if let Some(path) = text("path") {
        Some(format!("path: {}", exact(path)?))
    } else if let Some(url) = text("url") {
        let (scheme, rest) = url.split_once("://")?;
        Some(format!("url: {scheme}://{}/*", exact(rest.split('/').next()?)?))
    } else {
        None
    };
    let name = exact(&call.name)?;
    let pattern = about.map_or_else(|| name.to_owned(), |about| format!("{name}({about})"));
    pattern.parse().ok().filter(|pattern| covers(pattern, call))
}

/// Returns `true` if a pattern allows a call.
pub(super) fn covers(pattern: &Pattern, call: &ToolCall) -> bool {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    !QUESTIONS.contains(&&*call.name) && pattern.covers(&call.name, &arguments)
}

/// Returns the glob of a command; one with wildcards covers no more than a command without.
fn of_command(command: &str) -> String {
    let mut words = command.split(' ').filter(|word| !word.is_empty());
    let is_plain =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.contains(['/', '.', '=']);
    match (words.next(), words.next().filter(is_plain)) {
        (Some(program), Some(what)) if WITH_SUBCOMMANDS.contains(&program) => format!("{program} {what} *"),
        _ => exact(command).unwrap_or_default().to_owned(),
    }
}

/// Returns a text that a glob takes for itself.
fn exact(text: &str) -> Option<&str> {
    (!text.contains(['*', '?'])).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_suggested_for_a_call() {
        let check = |tool: &str, arguments: Value, expected: Option<&str>| {
            let suggested = suggested(&ToolCall::new("1", tool, arguments.to_string()));
            assert_eq!(
                suggested.map(|pattern| pattern.to_string()).as_deref(),
                expected,
                "{tool} {arguments}"
            );
        };
        let shell = |command: &str, expected| check("shell", json!({ "command": command }), expected);
        shell("cargo test --all", Some("shell(command: cargo test *)"));
        shell("cargo test", Some("shell(command: cargo test *)"));
        shell("git -C .. push", Some("shell(command: git -C .. push)"));
        shell("make CC=x", Some("shell(command: make CC=x)"));
        shell("ls -la", Some("shell(command: ls -la)"));
        shell("rm -r build", Some("shell(command: rm -r build)"));
        shell("rm *.txt", None);
        shell("git add *", Some("shell(command: git add *)"));
        shell("cargo test; rm -rf /", None);
        shell("cargo test > out", None);
        shell("cd x && make", None);
        shell("ls\nrm x", None);
        shell("", None);
        check(
            "write_file",
            json!({ "path": "src/a.rs", "content": "x" }),
            Some("write_file(path: src/a.rs)"),
        );
        check("write_file", json!({ "path": "../a.rs" }), None);
        check("write_file", json!({ "path": "src/*" }), None);
        check("fetch", json!({ "url": "https://docs.rs/a/b" }), Some("fetch(url: https://docs.rs/*)"));
        check("fetch", json!({ "url": "https://me@docs.rs/a" }), None);
        check("mcp__db__query", json!({ "sql": "select 1" }), Some("mcp__db__query"));
        check("to*l", json!({}), None);
        check("plan_exit", json!({ "plan": "x" }), None);
        check("request_input", json!({}), None);
    }

    #[test]
    fn a_suggestion_covers_no_other_program_and_path() {
        let check = |from: Value, other: Value| {
            let pattern = suggested(&ToolCall::new("1", "tool", from.to_string())).unwrap();
            assert!(!covers(&pattern, &ToolCall::new("2", "tool", other.to_string())), "{pattern} {other}");
        };
        let command = |text: &str| json!({ "command": text });
        check(command("cargo test"), command("cargo publish"));
        check(command("cargo test"), command("cargo test; rm x"));
        check(command("cargo test"), command("cargo test && cargo publish"));
        check(command("cargo test"), command("cargo testing"));
        check(command("ls"), command("ls -la"));
        check(json!({ "path": "a" }), json!({ "path": "b" }));
        check(json!({ "path": "a" }), json!({ "path": "a/../b" }));
    }
}
