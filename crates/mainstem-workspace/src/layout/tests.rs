//! Every id is one component, and different ids have different ones.

use std::path::Component;

use proptest::prelude::*;

use super::*;

#[test]
fn ids_are_escaped_into_one_component() {
    #[track_caller]
    fn check(id: &str, expected: &str) {
        assert_eq!(component(id), expected, "{id:?}");
    }
    check("reviewer", "reviewer");
    check("sub-0190f3c2_x", "sub-0190f3c2_x");
    check("", "%");
    check(".", "%2e");
    check("..", "%2e%2e");
    check("../../etc", "%2e%2e%2f%2e%2e%2fetc");
    check("/etc/passwd", "%2fetc%2fpasswd");
    check(r"..\x", "%2e%2e%5cx");
    check("a\0b", "a%00b");
    check("a\nb", "a%0ab");
    check("C:", "%43%3a");
    check("Ann", "%41nn");
    check("ann@x.org", "ann%40x%2eorg");
    check("%2e", "%252e");
    check("é", "%c3%a9");
    check("e\u{301}", "e%cc%81");
    check("con", "%63on");
    check("con.txt", "con%2etxt");
    check("com7", "%63om7");
    check("com", "com");
    check("com10", "com10");
    check("lpt0", "%6cpt0");
    check(" x ", "%20x%20");
    check("~", "%7e");
}

#[test]
fn long_ids_end_in_their_hash() {
    let (one, other) = ("x".repeat(5_000), "x".repeat(5_001));
    assert_eq!(component(&one).len(), READABLE + 2 + 64);
    assert_ne!(component(&one), component(&other));
    assert_eq!(component(&"x".repeat(LONGEST)), "x".repeat(LONGEST));
}

#[test]
fn the_paths_are_as_documented() {
    let layout = Layout::new("/ws");
    #[track_caller]
    fn check(path: PathBuf, expected: &str) {
        assert_eq!(path.to_str(), Some(expected));
    }
    check(layout.subagents(), "/ws/subagents");
    check(layout.skills(), "/ws/skills");
    check(layout.tasks("main", "s-1"), "/ws/agents/main/tasks/s-1.json");
    check(layout.artifact("s-1", "call-1", 0), "/ws/artifacts/s-1/call-1.txt");
    check(layout.artifact("s/1", "../a.1", 1), "/ws/artifacts/s%2f1/%2e%2e%2fa%2e1.1.txt");
    check(layout.instance("main", None, "s-1", "sub-2"), "/ws/agents/main/_/s-1/sub-2");
    check(layout.instance("main", Some("ann"), "s-1", "sub-2"), "/ws/agents/main/ann/s-1/sub-2");
    check(layout.instance("main", Some("_"), "s", "t"), "/ws/agents/main/%5f/s/t");
    check(layout.instance("main", Some("tasks"), "s", "t"), "/ws/agents/main/%74asks/s/t");
    check(layout.instance("main", Some(""), "s", "t"), "/ws/agents/main/%/s/t");
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-cA-C./%_-]{0,4}",
        ".{0,50}",
        prop::sample::select(vec!["con", "CON", "_", "%5f", "tasks", "%74asks", "", "%", "..", "com1"])
            .prop_map(str::to_owned),
        "[ab%]{118,260}",
    ]
}

proptest! {
    #[test]
    fn two_ids_never_meet(one in id(), other in id()) {
        let layout = Layout::new("");
        let at = |user: &str| layout.instance("a", Some(user), "s", "t").to_str().unwrap().to_lowercase();
        prop_assert_eq!(at(&one) == at(&other), one == other);
        let no_user = layout.instance("a", None, "s", "t");
        prop_assert_ne!(at(&one), no_user.to_str().unwrap());
    }

    #[test]
    fn an_id_is_one_plain_component(id in id()) {
        let path = Layout::new("").instance(&id, Some(&id), &id, &id);
        prop_assert_eq!(path.components().count(), 5);
        for component in path.components() {
            prop_assert!(matches!(component, Component::Normal(name) if name.len() <= 180 && name.is_ascii()));
        }
    }
}
