//! Patterns of calls that a person always allows: what is suggested for a call. Pure.

use mainstem::{message::ToolCall, policy::Pattern};
use serde_json::Value;

use crate::sanitize::visible;

/// The longest command or path that is suggested, in characters.
const LONGEST: usize = 120;

/// Calls whose approval is an answer to a question, so that each needs its own.
pub(super) const QUESTIONS: [&str; 2] = ["plan_exit", "request_input"];

/// Returns the pattern to suggest for a call: just this command or path, or all calls of a tool
/// whose other arguments a pattern would not look at. `None` if a pattern would allow more.
pub(super) fn suggested(call: &ToolCall) -> Option<Pattern> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let name = exact(&call.name)?;
    let pattern = match name {
        "shell" => format!("{name}(command: {})", exact(text("command")?)?),
        "write_file" | "edit_file" => format!("{name}(path: {})", exact(text("path")?)?),
        _ => name.to_owned(),
    };
    pattern.parse().ok().filter(|pattern| covers(pattern, call))
}

/// Returns `true` if a pattern allows a call.
pub(super) fn covers(pattern: &Pattern, call: &ToolCall) -> bool {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    !QUESTIONS.contains(&&*call.name) && pattern.covers(&call.name, &arguments)
}

/// Returns a text that a glob takes for itself, and a person can read in a line.
fn exact(text: &str) -> Option<&str> {
    let is_plain = visible(text) == text && text.chars().nth(LONGEST).is_none();
    (is_plain && !text.contains(['*', '?'])).then_some(text)
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
        shell("cargo test --all", Some("shell(command: cargo test --all)"));
        shell("cargo test", Some("shell(command: cargo test)"));
        shell("git -C .. push", Some("shell(command: git -C .. push)"));
        shell("make CC=x", Some("shell(command: make CC=x)"));
        shell("ls -la", Some("shell(command: ls -la)"));
        shell("rm -r build", Some("shell(command: rm -r build)"));
        shell("rm *.txt", None);
        shell("git add *", None);
        shell(&"x".repeat(121), None);
        shell("echo a\u{202e}b", None);
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
        check("fetch", json!({ "url": "https://docs.rs/a", "method": "GET" }), Some("fetch"));
        check("mcp__db__copy", json!({ "path": "a", "destination": "b" }), Some("mcp__db__copy"));
        check("mcp__db__query", json!({ "sql": "select 1" }), Some("mcp__db__query"));
        check("to*l", json!({}), None);
        check("plan_exit", json!({ "plan": "x" }), None);
        check("request_input", json!({}), None);
    }

    #[test]
    fn a_suggestion_covers_no_other_program_and_path() {
        let check = |from: Value, other: Value| {
            let tool = if from.get("path").is_some() { "write_file" } else { "shell" };
            let pattern = suggested(&ToolCall::new("1", tool, from.to_string())).unwrap();
            assert!(!covers(&pattern, &ToolCall::new("2", tool, other.to_string())), "{pattern} {other}");
        };
        let command = |text: &str| json!({ "command": text });
        check(command("cargo test"), command("cargo publish"));
        check(command("cargo test"), command("cargo test; rm x"));
        check(command("cargo test"), command("cargo test && cargo publish"));
        check(command("cargo test"), command("cargo testing"));
        check(command("git diff"), command("git diff --output=x"));
        check(command("ls"), command("ls -la"));
        check(json!({ "path": "a" }), json!({ "path": "b" }));
        check(json!({ "path": "a" }), json!({ "path": "a/../b" }));
    }
}
