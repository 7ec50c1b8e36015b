//! A request for approval as lines: who asks, what for, and what an edit changes. Pure.

use std::time::Duration;

use mainstem::{
    message::{ConfirmId, ToolCall},
    policy::Pattern,
};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::always::{QUESTIONS, suggested};
use crate::{
    fold::{folded, wrapped},
    sanitize,
};

/// The most lines of what is asked, before the person asks for all of them.
pub(crate) const SHOWN: usize = 16;

/// How long the smallest difference of an edit is looked for.
const LONGEST: Duration = Duration::from_millis(100);

/// The most characters of what a call is about, in the record of an answer.
const ABOUT: usize = 60;

/// The columns from which all answers are listed.
const WIDE: usize = 76;

/// A request for approval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(super) id: ConfirmId,
    pub(super) calls: Vec<ToolCall>,
    agent: String,
    /// The rule that asks, if one does.
    rule: Option<String>,
    /// The number of questions that wait behind it.
    pub(super) behind: usize,
    /// Whether only ASCII can be shown.
    is_ascii: bool,
}

/// A line of a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) text: String,
    pub(crate) kind: Kind,
}

/// What a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Who asks what.
    Head,
    Plain,
    Added,
    Removed,
    /// What is left out, and how to answer.
    Hint,
}

impl Question {
    pub(crate) fn new(id: ConfirmId, agent: &str, calls: Vec<ToolCall>) -> Self {
        Self { id, calls, agent: sanitize::visible(agent), rule: None, behind: 0, is_ascii: false }
    }

    /// Sets the rule that asks.
    pub(crate) fn with_rule(self, rule: Option<&str>) -> Self {
        Self { rule: rule.map(sanitize::visible), ..self }
    }

    /// Sets whether other characters than those of ASCII are shown as escapes.
    pub(crate) fn with_ascii(self, is_ascii: bool) -> Self {
        Self { is_ascii, ..self }
    }

    /// Returns `true` if a rule asks each time.
    pub(super) fn has_rule(&self) -> bool {
        self.rule.is_some()
    }

    /// Checks that such calls can be allowed always.
    ///
    /// # Errors
    /// Each needs an answer of its own; the text says why.
    pub(super) fn check_always(&self) -> Result<(), String> {
        if let Some(rule) = &self.rule {
            return Err(format!("  the rule {rule} asks each time; y: yes"));
        }
        match self.calls.iter().find(|call| QUESTIONS.contains(&&*call.name)) {
            Some(call) => Err(format!("  each {} needs an answer of its own; y: yes", call.name)),
            None => Ok(()),
        }
    }

    /// Returns the question in lines of this width: at most so many of what is asked, and the
    /// answers.
    pub(crate) fn lines(&self, width: usize, most: usize) -> Vec<Row> {
        let (mut lines, hidden) = self.first(width, most);
        if hidden > 0 {
            lines.push(hint(format!("  … {hidden} more lines · v: show all")));
        }
        lines.extend(self.how(width));
        lines
    }

    /// Returns what is asked in at most so many lines of this width, without the answers.
    pub(crate) fn rows(&self, width: usize, most: usize) -> Vec<Row> {
        let (mut lines, hidden) = self.first(width, most);
        if hidden > 0 {
            lines.push(hint(format!("  … {hidden} more lines")));
        }
        lines
    }

    /// Returns the first lines of what is asked, and the number of the others.
    fn first(&self, width: usize, most: usize) -> (Vec<Row>, usize) {
        let mut lines = self.all_lines(width);
        if lines.len() <= most {
            return (lines, 0);
        }
        let shown = most.saturating_sub(1).max(1);
        let hidden = lines.len() - shown;
        lines.truncate(shown);
        (lines, hidden)
    }

    /// Returns all lines of what is asked.
    pub(crate) fn all_lines(&self, width: usize) -> Vec<Row> {
        let rule = self.rule.iter().map(|rule| hint(format!("  by the rule {rule}")));
        let lines = self.calls.iter().flat_map(|call| asked(&self.agent, call)).chain(rule);
        lines.flat_map(|line| self.plain(line).folded(width)).collect()
    }

    /// Returns the answers that are possible.
    fn how(&self, width: usize) -> Vec<Row> {
        let suggested: Vec<_> = self.suggested().iter().map(ToString::to_string).collect();
        let mut lines = Vec::new();
        if !suggested.is_empty() {
            lines.push(hint(format!("  a: always {}", suggested.join(", "))));
        }
        let behind = match self.behind {
            0 => String::new(),
            1 => " · 1 more question".to_owned(),
            count => format!(" · {count} more questions"),
        };
        let answers = if width < WIDE {
            "y: yes · n: no"
        } else {
            "y: yes · n [reason]: no · {…}: with these arguments"
        };
        lines.push(hint(format!("  {answers}{behind}")));
        lines.into_iter().flat_map(|line| self.plain(line).folded(width)).collect()
    }

    /// Returns a line with what the terminal can show.
    fn plain(&self, row: Row) -> Row {
        if self.is_ascii { Row { text: sanitize::visible_ascii(&row.text), ..row } } else { row }
    }

    /// Returns what was asked, or allowed instead, in a line.
    pub(super) fn summary(&self, edited: Option<&Value>) -> String {
        let calls = self.calls.iter().map(|call| match edited {
            Some(arguments) => summary(&ToolCall::new(call.id.clone(), &*call.name, arguments.to_string())),
            None => summary(call),
        });
        format!("{}: {}", self.agent, calls.collect::<Vec<_>>().join(", "))
    }

    /// Returns a pattern for each call; none if a call has none.
    pub(super) fn suggested(&self) -> Vec<Pattern> {
        if self.check_always().is_err() {
            return Vec::new();
        }
        self.calls.iter().map(suggested).collect::<Option<_>>().unwrap_or_default()
    }
}

impl Row {
    /// Breaks it where a terminal would, and a hint between words.
    fn folded(self, width: usize) -> Vec<Self> {
        let rows = if self.kind == Kind::Hint { wrapped } else { folded }(&self.text, width);
        rows.into_iter().map(|text| Self { text, kind: self.kind }).collect()
    }
}

/// Returns a call with what it is about: the command, the path, or its first text.
fn summary(call: &ToolCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let named = ["command", "path", "url"].into_iter().find_map(|name| arguments.get(name)?.as_str());
    let first = || arguments.as_object()?.values().find_map(Value::as_str);
    match named.or_else(first) {
        Some(about) if about.chars().nth(ABOUT).is_some() => {
            format!("{} {}…", call.name, sanitize::visible(&about.chars().take(ABOUT).collect::<String>()))
        }
        Some(about) => format!("{} {}", call.name, sanitize::visible(about)),
        None => call.name.clone(),
    }
}

fn hint(text: String) -> Row {
    Row { text, kind: Kind::Hint }
}

/// Returns what an agent asks for: its plan, the command, the lines that change, or the arguments.
fn asked(agent: &str, call: &ToolCall) -> Vec<Row> {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let tool = sanitize::visible(&call.name);
    let rest = |shown: &[&str]| rest(&arguments, shown);
    let (head, lines) = match (&*call.name, text("path"), text("command")) {
        ("plan_exit", ..) if text("plan").is_some() => {
            (format!("{agent} has a plan:"), lines(Kind::Plain, text("plan").unwrap_or_default()))
        }
        ("edit_file", Some(path), _) if text("old").is_some() && text("new").is_some() => {
            let changes = diff(text("old").unwrap_or_default(), text("new").unwrap_or_default());
            let path = sanitize::visible(path);
            (format!("{agent} wants to change {path}{}:", rest(&["path", "old", "new"])), changes)
        }
        ("write_file", Some(path), _) if text("content").is_some() => {
            let path = sanitize::visible(path);
            let content = text("content").unwrap_or_default();
            let size = if content.is_empty() { " as an empty file" } else { "" };
            (
                format!("{agent} wants to write {path}{}{size}:", rest(&["path", "content"])),
                lines(Kind::Added, content),
            )
        }
        ("shell", _, Some(command)) => {
            let head = format!("{agent} wants to run a command with {tool}{}:", rest(&["command"]));
            (head, lines(Kind::Plain, command))
        }
        _ => (format!("{agent} wants to run {tool} {}", sanitize::visible(&call.arguments)), Vec::new()),
    };
    [vec![Row { text: head, kind: Kind::Head }], lines].concat()
}

/// Returns the other arguments as JSON behind a blank, such as ` {"timeout_seconds":5}`; an empty
/// string without any.
fn rest(arguments: &Value, shown: &[&str]) -> String {
    let mut rest = arguments.as_object().cloned().unwrap_or_default();
    rest.retain(|name, _| !shown.contains(&&**name));
    if rest.is_empty() {
        String::new()
    } else {
        format!(" {}", sanitize::visible(&Value::Object(rest).to_string()))
    }
}

fn lines(kind: Kind, text: &str) -> Vec<Row> {
    // A carriage return is shown, and the line feed at the end ends the last line.
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').filter(|_| !text.is_empty()).map(|text| line(kind, text)).collect()
}

fn line(kind: Kind, text: &str) -> Row {
    let sign = match kind {
        Kind::Added => "+ ",
        Kind::Removed => "- ",
        Kind::Plain | Kind::Head | Kind::Hint => "",
    };
    // A tab is shown as what it is for.
    Row { text: format!("  {sign}{}", sanitize::visible(&text.replace('\t', "    "))), kind }
}

/// Returns the lines that an edit removes and adds, and those between them.
fn diff(old: &str, new: &str) -> Vec<Row> {
    let (old, new): (Vec<_>, Vec<_>) = (old.split('\n').collect(), new.split('\n').collect());
    let changes = TextDiff::configure().timeout(LONGEST).diff_slices(&old, &new);
    let changes = changes.iter_all_changes().map(|change| match change.tag() {
        ChangeTag::Delete => line(Kind::Removed, change.value()),
        ChangeTag::Insert => line(Kind::Added, change.value()),
        ChangeTag::Equal => line(Kind::Plain, &format!("  {}", change.value())),
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(tool: &str, arguments: Value) -> Question {
        Question::new(
            "q".parse().unwrap(),
            "main › writer",
            vec![ToolCall::new("1", tool, arguments.to_string())],
        )
    }

    fn shown(question: &Question, width: usize, most: usize) -> String {
        let lines = question.lines(width, most).into_iter();
        lines.map(|line| format!("{:<8}{}\n", format!("{:?}", line.kind), line.text)).collect()
    }

    #[test]
    fn what_is_asked() {
        let mut shots = String::new();
        let mut show = |title: &str, question: Question, most: usize| {
            shots += &format!("--- {title}\n{}\n", shown(&question, 78, most));
        };
        show("a command", question("shell", json!({ "command": "cargo test", "timeout_seconds": 5 })), SHOWN);
        show("two lines", question("shell", json!({ "command": "ls\n\trm x\u{1b}[2K" })), SHOWN);
        let edit = json!({ "path": "a.rs", "old": "fn a() {\n    one();\n}\n", "new": "fn a() {\n    two();\n    three();\n}\n" });
        show("an edit", question("edit_file", edit), SHOWN);
        let everywhere = json!({ "path": "a.rs", "old": "a", "new": "b", "replace_all": true });
        show("an edit everywhere", question("edit_file", everywhere), SHOWN);
        let content = (1..=40).map(|n| format!("line {n}\n")).collect::<String>();
        show("a long file", question("write_file", json!({ "path": "notes.md", "content": content })), 6);
        show("a plan", question("plan_exit", json!({ "plan": "1. Look\n2. Act" })), SHOWN);
        let long = json!({ "sql": "select name from people where id = 1 or true; drop table people" });
        let crlf = json!({ "path": "a.txt", "old": "x\r\ny", "new": "x\ny\n" });
        show("line ends", question("edit_file", crlf), SHOWN);
        show("an empty file", question("write_file", json!({ "path": "a.txt", "content": "" })), SHOWN);
        let deploy = json!({ "path": "notes.txt", "content": "hi" });
        show("a tool that only looks like it", question("mcp__e__deploy", deploy), SHOWN);
        let rule = question("shell", json!({ "command": "git push" })).with_rule(Some("shell(git push *)"));
        show("a rule", rule, SHOWN);
        let foreign = question("shell", json!({ "command": "rm résum\u{435}.txt" }));
        show("without UTF-8", foreign.with_ascii(true), SHOWN);
        show("others", Question { behind: 2, ..question("mcp__db__query", long) }, SHOWN);
        insta::assert_snapshot!(shots);
    }

    #[test]
    fn nothing_is_hidden_in_a_long_line() {
        let command = format!("echo {}rm -rf x", " ".repeat(500));
        let lines = question("shell", json!({ "command": command })).all_lines(60);
        assert!(lines.iter().all(|line| line.text.chars().count() <= 60));
        assert_eq!(lines[1..].iter().map(|line| &*line.text).collect::<String>().trim_start(), command);
    }
}
