//! Rows of `crate → dependency (kind)`, allowed and not.

use super::{ALLOWED, check as problems};
use crate::tidy::packages::{Dependency, Package};

/// Checks the edge `from → to` in a workspace that has both.
fn check(from: &str, to: &str, kind: Option<&str>, expected: Option<&str>) {
    let edge = Dependency { name: to.into(), kind: kind.map(String::from) };
    let package = Package {
        name: from.into(),
        folder: format!("crates/{from}"),
        manifest: format!("[dependencies]\n{to}.workspace = true\n"),
        dependencies: vec![edge],
    };
    let known = Package { name: to.into(), ..Package::default() };
    let found = problems(&[package, known]);
    let found = found.iter().map(ToString::to_string).find(|it| it.starts_with(&format!("crates/{from}/")));
    let expected = expected.map(|message| format!("crates/{from}/Cargo.toml:2: {message}"));
    assert_eq!(found, expected, "{from} → {to} {kind:?}");
}

#[test]
fn edges_of_the_table_are_allowed() {
    check("mainstem-event", "mainstem-message", None, None);
    check("mainstem-react", "mainstem-policy", None, None);
    check("mainstem-react", "mainstem-tool", Some("build"), None);
    check("mainstem", "mainstem-session", None, None);
    check("mainstem-cli", "mainstem", None, None);
    check("mainstem-tests", "mainstem", Some("dev"), None);
    check("mainstem-bench", "mainstem-openai", None, None);
}

#[test]
fn other_edges_are_not() {
    for (from, to) in [
        ("mainstem-message", "mainstem-event"),
        ("mainstem-event", "mainstem-model"),
        ("mainstem-react", "mainstem-subagent"),
        ("mainstem-react", "mainstem-spec"),
        ("mainstem-tool", "mainstem-policy"),
        ("mainstem-mcp", "mainstem-http"),
        ("mainstem-openai", "mainstem-event"),
        ("mainstem-session", "mainstem"),
        ("mainstem-cli", "mainstem-session"),
        ("xtask", "mainstem-tests"),
    ] {
        let message =
            format!("{from} may not know {to}; a new edge needs a decision and a line in the table");
        for kind in [None, Some("build"), Some("dev")] {
            check(from, to, kind, Some(&message));
        }
    }
}

#[test]
fn the_test_kit_is_for_tests_only() {
    let message = "mainstem-testing is a dev-dependency only";
    for from in ["mainstem-react", "mainstem", "mainstem-tests"] {
        check(from, "mainstem-testing", Some("dev"), None);
        check(from, "mainstem-testing", None, Some(message));
        check(from, "mainstem-testing", Some("build"), Some(message));
    }
}

#[test]
fn crates_of_others_are_not_our_business() {
    let serde = Dependency { name: "serde".into(), kind: None };
    let package = Package { name: "xtask".into(), dependencies: vec![serde], ..Package::default() };
    assert_eq!(problems(&[package]), []);
}

#[test]
fn a_crate_without_a_line_in_the_table_is_reported() {
    let package = Package { name: "mainstem-util".into(), folder: "crates/u".into(), ..Package::default() };
    let found: Vec<_> = problems(&[package]).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["crates/u/Cargo.toml:1: mainstem-util is not in the table of edges"]);
}

#[test]
fn the_table_has_no_cycle() {
    let mut known = Vec::new();
    for _ in ALLOWED {
        let free = ALLOWED.iter().filter(|(_, to)| to.split_whitespace().all(|name| known.contains(&name)));
        known = free.map(|(name, _)| *name).collect();
    }
    let stuck: Vec<_> = ALLOWED.iter().filter(|(name, _)| !known.contains(name)).collect();
    assert!(stuck.is_empty(), "{stuck:?}");
}
