//! Files of agents and skills: each finding names a place that exists, and a file reads the same
//! twice.

use std::path::Path;

use mainstem::spec::{SpecError, parse, parse_skill};

use crate::{fuzz, input::Input};

/// The folders by which a file's dialect is told.
const FOLDERS: [&str; 3] = ["subagents", ".claude/agents", ".opencode/agent"];

fn assert_placed(found: &[SpecError], text: &str) {
    let text = text.replace("\r\n", "\n");
    // A carriage return alone ends a line of YAML, too.
    let lines: Vec<_> = text.split(['\n', '\r']).collect();
    for error in found {
        let shown = error.to_string();
        let Some(at) = error.position else { continue };
        let line = (at.line as usize).checked_sub(1).and_then(|line| text_line(&lines, line));
        let columns = line.unwrap_or_else(|| panic!("{shown}: the text has {} lines", lines.len()));
        assert!((1..=columns + 1).contains(&(at.column as usize)), "{shown}: the line has {columns} columns");
    }
}

/// How long a line is; the place after the last line counts as empty.
fn text_line(lines: &[&str], line: usize) -> Option<usize> {
    (line <= lines.len()).then(|| lines.get(line).map_or(0, |line| line.chars().count()))
}

fn check(input: &Input) {
    let text = input.text();
    for folder in FOLDERS {
        let path = Path::new(folder).join("reviewer.md");
        let read = parse("reviewer", &text, &path);
        assert_eq!(read, parse("reviewer", &text, &path));
        match &read {
            Ok(parsed) => assert!(!parsed.warnings.iter().any(SpecError::is_error)),
            Err(found) => assert!(found.iter().any(SpecError::is_error), "a refusal without a reason"),
        }
        assert_placed(&read.map_or_else(|found| found, |parsed| parsed.warnings), &text);
    }
    let skill = parse_skill("review", &text, Path::new("skills/review/SKILL.md"));
    assert_placed(&skill.map_or_else(|found| found, |(_, warnings)| warnings), &text);
}

#[test]
fn front_matter() {
    fuzz!("front_matter", check);
}
