//! What a `SKILL.md` may say, and what is said to the rest.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

/// The skill, or nothing, and what was said.
fn read(name: &str, text: &str) -> (Option<Skill>, String) {
    let lines = |found: Vec<SpecError>| found.iter().map(|error| format!("{error}\n")).collect();
    match parse_skill(name, text, Path::new("s/SKILL.md")) {
        Ok((skill, warnings)) => (Some(skill), lines(warnings)),
        Err(errors) => (None, lines(errors)),
    }
}

#[test]
fn a_skill_is_its_folder_its_description_and_its_text() {
    let text = "---\nname: pdf\ndescription: ' Fills in forms '\n---\n\n# Forms\r\nUse pdftk.\n\n";
    let (skill, said) = read("pdf", text);
    let skill = skill.unwrap();
    assert_eq!((&*skill.name, &*skill.description), ("pdf", "Fills in forms"));
    assert_eq!((&*skill.body, &*said), ("# Forms\nUse pdftk.", ""));
    assert_eq!(skill.origin, Origin::File("s/SKILL.md".into()));
}

#[test]
fn the_other_keys_of_the_format_are_passed_over() {
    let text = "---\nname: pdf\ndescription: Fills in forms\nlicense: MIT\ncompatibility: needs pdftk\nmetadata:\n  \
                author: ann\nallowed-tools: Bash(pdftk:*) Read\nversion: 1\n---\nUse pdftk.\n";
    let (skill, said) = read("pdf", text);
    assert_eq!((skill.is_some(), &*said), (true, ""));
}

#[test]
fn what_is_suspicious_is_a_warning() {
    let (skill, said) = read("pdf", "---\nname: PDF\ndescription: Forms\ndescribtion: Forms\n---\n");
    assert!(skill.is_some());
    assert_snapshot!(said, @r#"
    s/SKILL.md: warning: there are no instructions below the front matter
    s/SKILL.md:2:7: warning: the skill is called "pdf" after its folder, not "PDF"
    s/SKILL.md:4:1: warning: unknown key "describtion"; did you mean "description"?
    "#);
}

#[test]
fn what_is_wrong_is_an_error_at_its_place() {
    #[track_caller]
    fn check(name: &str, text: &str, expected: &str) {
        let (skill, said) = read(name, text);
        assert_eq!((skill, &*said), (None, &*format!("s/SKILL.md:{expected}\n")));
    }
    let fine = "---\ndescription: Forms\n---\nUse pdftk.\n";
    check(
        "PDF forms",
        fine,
        "1:1: error: invalid skill name \"PDF forms\": use a-z, 0-9, _ and -, starting with a letter or digit; did you mean \"pdf-forms\"?",
    );
    check(
        "..",
        fine,
        "1:1: error: invalid skill name \"..\": use a-z, 0-9, _ and -, starting with a letter or digit",
    );
    check(
        "pdf",
        "---\nname: pdf\n---\nUse pdftk.\n",
        "1:1: error: the description is missing: say when to use the skill, the model chooses by it",
    );
    check(
        "pdf",
        "---\ndescription: ''\n---\nUse pdftk.\n",
        "2:14: error: the description is empty: say when to use the skill, the model chooses by it",
    );
    check(
        "pdf",
        "---\ndescription: true\n---\nUse pdftk.\n",
        "2:14: error: expected text, got true: put it in quotes",
    );
    check(
        "pdf",
        "---\ndescription:\n---\nUse pdftk.\n",
        "2:1: error: expected text, got nothing: give it a value or remove the key",
    );
    check(
        "pdf",
        "---\ndescription: a\ndescription: b\n---\nUse pdftk.\n",
        "3:1: error: \"description\" is given twice, before on line 2",
    );
    check(
        "pdf",
        "Use pdftk.\n",
        "1:1: error: the front matter is missing: the file starts with a \"---\" line, keys, and a \"---\" line",
    );
}

#[test]
fn a_skill_built_in_code_is_checked_too() {
    let said = |skill: Skill| {
        let errors = skill.validate().err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(said(Skill::new("pdf", "Forms", "")), "");
    assert_eq!(
        said(Skill::new("a/b", " ", "")),
        "error: skill \"a/b\": invalid skill name \"a/b\": use a-z, 0-9, _ and -, starting with a letter or digit; \
         error: skill \"a/b\": the description is empty: say when to use the skill, the model chooses by it"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_text_is_too_strange(name in "[a-z.]{0,3}|\\PC*", yaml in "(name|description|[a-z]*)?:? ?\\PC{0,9}\n?\\PC*", body in "\\PC*") {
        for text in [format!("---\n{yaml}\n---\n{body}"), format!("{yaml}{body}")] {
            if let Ok((skill, _)) = parse_skill(&name, &text, Path::new("SKILL.md")) {
                prop_assert!(skill.validate().is_ok(), "{skill:?}");
            }
        }
    }
}
