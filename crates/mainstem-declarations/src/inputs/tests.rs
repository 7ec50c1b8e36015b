//! Files that break, and values of the program.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::*;
use crate::Code;

fn write(dir: &TempDir, path: &str, text: &str) {
    let path = dir.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn inputs(dir: &Path) -> Inputs {
    Inputs::new(Sources::of_workspace(dir))
}

fn codes(found: &[Diagnostic]) -> Vec<Code> {
    found.iter().map(Diagnostic::code).collect()
}

#[test]
fn a_broken_file_reverts_until_it_is_correct_or_removed() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "subagents/critic.md", "---\ndescription: Good\n---\n");
    write(&dir, "skills/pdf/SKILL.md", "---\ndescription: Good\n---\nGood.\n");
    let inputs = inputs(dir.path());
    let (good, found) = inputs.read(&Declarations::default()).unwrap();
    assert_eq!(codes(&found), []);
    write(&dir, "subagents/critic.md", "---\ndescription: Broken\nsteps: many\n---\n");
    write(&dir, "skills/pdf/SKILL.md", "Broken.");
    let (broken, found) = inputs.read(&good).unwrap();
    assert_eq!(codes(&found), [Code::Invalid, Code::Reverted, Code::Invalid, Code::Reverted]);
    assert_eq!(broken, good);
    // Again: what reverted is the last version, too.
    assert_eq!(inputs.read(&broken).unwrap().0, good);
    // Without a last version the file is left out.
    let (first, found) = inputs.read(&Declarations::default()).unwrap();
    assert_eq!(codes(&found), [Code::Invalid, Code::Invalid]);
    assert!(first.specs().is_empty() && first.skills().is_empty());
    fs::remove_file(dir.path().join("subagents/critic.md")).unwrap();
    write(&dir, "skills/pdf/SKILL.md", "---\ndescription: Better\n---\nBetter.\n");
    let (after, found) = inputs.read(&broken).unwrap();
    assert_eq!(codes(&found), []);
    assert!(after.specs().is_empty());
    assert_eq!(after.skills().get("pdf").unwrap().body, "Better.");
}

#[test]
fn the_program_replaces_a_file_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "subagents/critic.md", "---\ndescription: File\n---\n");
    let inputs = inputs(dir.path()).with_specs([AgentSpec::new("critic", "Code")]);
    let (read, found) = inputs.read(&Declarations::default()).unwrap();
    assert_eq!(codes(&found), [Code::Duplicate]);
    assert_eq!(read.specs().get("critic").unwrap().description, "Code");
    assert!(inputs.has_in_code("critic") && !inputs.has_in_code("poet"));
    assert!(!inputs.is_fixed() && Inputs::default().is_fixed());
}

#[test]
fn an_invalid_declaration_in_code_is_an_error() {
    let spec = AgentSpec::new("critic", "Code").with_url("https://example.org").with_workspace_path("team");
    let error = Inputs::default().with_specs([spec]).read(&Declarations::default()).unwrap_err();
    assert!(matches!(&error, DeclarationError::Spec { id, .. } if id == "critic"), "{error}");
    let error = Inputs::default().with_skills([Skill::new("No Name", "d", "b")]);
    let error = error.read(&Declarations::default()).unwrap_err();
    assert!(matches!(&error, DeclarationError::Skill { name, .. } if name == "No Name"), "{error}");
}

#[test]
fn a_prompt_of_another_file_is_watched() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "subagents/editor.md", "---\ndescription: d\nworkspace.path: team\n---\n");
    let inputs = inputs(dir.path());
    let mut watch = inputs.watch();
    let (read, found) = inputs.read_and_watch(&mut watch, &Declarations::default()).unwrap();
    assert_eq!(codes(&found), [Code::MissingPrompt]);
    assert!(!watch.changed());
    write(&dir, "team/AGENTS.md", "You edit.");
    assert!(watch.changed());
    let (read, found) = inputs.read_and_watch(&mut watch, &read).unwrap();
    assert_eq!(codes(&found), []);
    assert_eq!(read.specs().get("editor").unwrap().prompt, "You edit.");
}
