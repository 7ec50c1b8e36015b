//! Who wins when two declare one id.

use super::*;

fn spec(id: &str, origin: &Origin, description: &str) -> AgentSpec {
    AgentSpec::new(id, description).with_origin(origin.clone())
}

#[test]
fn the_program_wins_over_files_and_files_over_what_is_built_in() {
    let file = Origin::File("subagents/a.md".into());
    let check = |first: &Origin, second: &Origin, winner: &str, warning: &str| {
        let mut specs = SpecSet::new();
        assert_eq!(specs.insert(spec("a", first, "first")), None);
        let found = specs.insert(spec("a", second, "second")).unwrap();
        assert_eq!(specs.get("a").unwrap().description, winner);
        assert_eq!(found.to_string(), warning);
        assert!(!found.is_error());
        assert_eq!(specs.len(), 1);
    };
    let in_code = r#"subagents/a.md: warning: agent "a" is declared twice: the one built in code replaces the one in subagents/a.md"#;
    check(&file, &Origin::Program, "second", in_code);
    check(&Origin::Program, &file, "first", in_code);
    let in_file =
        r#"warning: agent "a" is declared twice: the one in subagents/a.md replaces the built-in one"#;
    check(&Origin::BuiltIn, &file, "second", in_file);
    check(&file, &Origin::BuiltIn, "first", in_file);
    let later = r#"subagents/a.md: warning: agent "a" is declared twice: the one in other/a.md replaces the one in subagents/a.md"#;
    check(&file, &Origin::File("other/a.md".into()), "second", later);
}

#[test]
fn merging_keeps_the_order_of_ids_and_reports_each_clash() {
    let set = |origin: Origin, ids: &[&str]| {
        let mut specs = SpecSet::new();
        ids.iter().for_each(|id| assert_eq!(specs.insert(spec(id, &origin, "x")), None));
        specs
    };
    let mut specs = set(Origin::BuiltIn, &["m", "general-purpose"]);
    assert_eq!(specs.merge(SpecSet::new()), []);
    let warnings = specs.merge(set(Origin::Program, &["z", "m", "a"]));
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        specs.iter().map(|spec| spec.id.as_str()).collect::<Vec<_>>(),
        ["a", "general-purpose", "m", "z"]
    );
    assert_eq!(specs.get("m").unwrap().origin, Origin::Program);
    assert!(specs.get("b").is_none());
    assert!(SpecSet::new().is_empty() && !specs.is_empty());
}

#[test]
fn changes_are_told_by_id() {
    let set = |specs: &[(&str, &str)]| {
        let mut set = SpecSet::new();
        specs.iter().for_each(|(id, what)| assert_eq!(set.insert(AgentSpec::new(*id, *what)), None));
        set
    };
    let earlier = set(&[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]);
    let mut later = set(&[("e", "1"), ("b", "2"), ("a", "1"), ("d", "1")]);
    later.specs.get_mut("d").unwrap().prompt = "new".to_owned();
    let changes = later.changes_since(&earlier);
    assert_eq!(
        (&*changes.added, &*changes.changed, &*changes.removed),
        (&["e".to_owned()][..], &["b".to_owned(), "d".to_owned()][..], &["c".to_owned()][..])
    );
    assert!(!changes.is_empty() && earlier.changes_since(&earlier).is_empty());
}
