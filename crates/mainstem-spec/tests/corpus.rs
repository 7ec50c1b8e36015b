//! Files in the styles of public collections: each is read as it is meant, and none can break the
//! loader.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use insta::assert_snapshot;
use mainstem_spec::{Parsed, SpecError, load_file, parse};
use proptest::prelude::*;

fn corpus() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let dirs = [".claude/agents", ".opencode/agent", ".github/agents"];
    let files = dirs.iter().flat_map(|dir| std::fs::read_dir(root.join(dir)).unwrap());
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 40, "{files:?}");
    files
}

#[test]
fn every_file_is_read_as_it_is_meant() {
    let text = corpus().iter().map(|path| described(path)).collect::<String>();
    assert_snapshot!(text);
}

/// What is understood of a file, a line each for what isn't the default, and what is said about it.
fn described(path: &Path) -> String {
    let mut text = format!("{}\n", path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display());
    let found = match load_file(path) {
        Ok(parsed) => {
            text += &spec(&parsed);
            parsed.warnings
        }
        Err(found) => found,
    };
    let place = format!("{}:", path.display());
    for error in found {
        let _ = writeln!(text, "  ! {}", error.to_string().replace(&place, ""));
    }
    text + "\n"
}

fn spec(parsed: &Parsed) -> String {
    let spec = &parsed.spec;
    let mut text = format!("  {} ({}): {:?}\n", spec.id, parsed.dialect, spec.description);
    let mut line = |is_default: bool, name: &str, value: String| {
        if !is_default {
            let _ = writeln!(text, "  {name}: {value}");
        }
    };
    line(!parsed.disabled, "disabled", "yes".to_owned());
    line(spec.model.is_none(), "model", format!("{:?}", spec.model));
    line(spec.steps == 10, "steps", spec.steps.to_string());
    line(spec.effort.is_none(), "effort", format!("{:?}", spec.effort));
    line(spec.temperature.is_none(), "temperature", format!("{:?}", spec.temperature));
    line(spec.top_p.is_none(), "top_p", format!("{:?}", spec.top_p));
    line(spec.tools.is_none(), "tools", format!("{:?}", spec.tools));
    line(spec.disallowed_tools.is_empty(), "disallowed", format!("{:?}", spec.disallowed_tools));
    line(spec.skills.is_none(), "skills", format!("{:?}", spec.skills));
    line(!spec.hidden, "hidden", "yes".to_owned());
    line(spec.mode == mainstem_spec::Mode::All, "mode", format!("{:?}", spec.mode));
    line(spec.timeout.is_none(), "timeout", format!("{:?}", spec.timeout));
    for (pattern, permission) in &spec.permissions {
        line(false, "rule", format!("{permission:?} {pattern}"));
    }
    line(spec.prompt.lines().count() == 1, "prompt", format!("{:?}", spec.prompt));
    text
}

/// Whatever happens, an error has a place in the file, and only errors refuse it.
fn check_any(path: &Path, text: &str) -> Result<(), TestCaseError> {
    let (found, refused) = match parse("a", text, path) {
        Ok(parsed) => {
            prop_assert!(parsed.spec.validate().is_ok(), "{:?}", parsed.spec.validate());
            (parsed.warnings, false)
        }
        Err(found) => (found, true),
    };
    prop_assert_eq!(found.iter().any(SpecError::is_error), refused);
    let lines = text.matches(['\n', '\r']).count() + 2;
    for error in found {
        let position = error.position.expect("a finding has a place");
        prop_assert!(
            position.line >= 1 && position.column >= 1 && position.line as usize <= lines,
            "{}",
            error
        );
        prop_assert!(!error.to_string().contains(char::is_control), "{:?}", error);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn mutations_of_them_never_panic(
        file in any::<prop::sample::Index>(),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0_usize..12, "[-\\PC\n\t\r:*&@%`#\\\\\\[{'\"<>|]{0,4}"), 1..8,
        ),
        lines in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
    ) {
        let path = file.get(&corpus()).clone();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lined: Vec<&str> = text.split_inclusive('\n').collect();
        for (from, to) in lines {
            let moved = lined.remove(from.index(lined.len()));
            lined.insert(to.index(lined.len() + 1), moved);
        }
        let mut chars: Vec<char> = lined.concat().chars().collect();
        for (at, removed, inserted) in edits {
            let start = at.index(chars.len() + 1);
            let end = chars.len().min(start + removed);
            chars.splice(start..end, inserted.chars());
        }
        check_any(&path, &chars.into_iter().collect::<String>())?;
    }
}
