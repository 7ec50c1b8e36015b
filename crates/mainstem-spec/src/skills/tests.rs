//! A directory of skills with everything that can be wrong in it.

use insta::assert_snapshot;
use tempfile::TempDir;

use super::*;
use crate::Origin;

fn workspace(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

/// Each skill with its files, and what was said.
fn load(dir: &TempDir) -> (Vec<String>, String) {
    let (skills, errors) = load_skills(&dir.path().join("skills"));
    let root = format!("{}/", dir.path().display());
    let line = |skill: &Skill| format!("{}: {}", skill.name, skill.files.join(" ")).trim().to_owned();
    (
        skills.iter().map(line).collect(),
        errors.iter().map(|error| format!("{error}\n").replace(&root, "")).collect(),
    )
}

const FINE: &str = "---\ndescription: Forms\n---\nUse pdftk.\n";

#[test]
fn each_folder_is_a_skill_and_its_files_are_named() {
    let dir = workspace(&[
        ("skills/pdf/SKILL.md", FINE),
        ("skills/pdf/forms.md", ""),
        ("skills/pdf/scripts/fill/run.py", ""),
        ("skills/pdf/.cache/x", ""),
        ("skills/alone/SKILL.md", FINE),
        ("skills/README.md", "not a folder"),
        ("skills/.hidden/SKILL.md", FINE),
    ]);
    let (skills, said) = load(&dir);
    assert_eq!(skills, ["alone:", "pdf: skills/pdf/forms.md skills/pdf/scripts/fill/run.py"]);
    assert_eq!(said, "");
}

#[test]
fn what_is_broken_is_left_out_and_said() {
    let dir = workspace(&[
        ("skills/Big One/SKILL.md", FINE),
        ("skills/bad/SKILL.md", "---\nname: bad\n---\nUse pdftk.\n"),
        ("skills/empty/notes.md", ""),
        ("skills/pdf/SKILL.md", FINE),
    ]);
    let (skills, said) = load(&dir);
    assert_eq!(skills, ["pdf:"]);
    assert_snapshot!(said, @r#"
    skills/Big One/SKILL.md:1:1: error: invalid skill name "Big One": use a-z, 0-9, _ and -, starting with a letter or digit; did you mean "big-one"?
    skills/bad/SKILL.md:1:1: error: the description is missing: say when to use the skill, the model chooses by it
    skills/empty: warning: there is no SKILL.md in this folder, so it is no skill
    "#);
}

#[test]
fn there_need_be_no_skills() {
    assert_eq!(load(&workspace(&[])), (Vec::new(), String::new()));
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out() {
    let dir = workspace(&[("secret/SKILL.md", FINE), ("skills/own/SKILL.md", FINE)]);
    std::os::unix::fs::symlink(dir.path().join("secret"), dir.path().join("skills/out")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("secret/SKILL.md"), dir.path().join("skills/own/more.md"))
        .unwrap();
    let (skills, said) = load(&dir);
    assert_eq!(skills, ["own:"]);
    assert_snapshot!(said, @"skills/out/SKILL.md: error: the link leads out of the directory and isn't followed: copy the file");
}

#[test]
fn the_program_wins_over_a_file_and_the_clash_is_said() {
    let file = |path: &str| Skill::new("pdf", "File", "").with_origin(Origin::File(path.into()));
    let mut skills = SkillSet::new();
    skills.insert(Skill::new("pdf", "Code", ""));
    let said: Vec<_> = skills.insert(file("a/SKILL.md")).iter().map(ToString::to_string).collect();
    assert_eq!(skills.get("pdf").unwrap().description, "Code");
    assert_snapshot!(said.join("\n"), @r#"a/SKILL.md: warning: skill "pdf" is declared twice: the one built in code replaces the one in a/SKILL.md"#);
}
