//! What a hash covers, and the text of a part.

use serde_json::{Value, json};

use super::*;

fn hash(content: Value) -> String {
    Part::new("a.md", "url", content).hash()
}

#[test]
fn a_hash_is_of_values_and_not_of_their_order() {
    let one = hash(json!({ "a": 1, "b": { "c": 2, "d": 3 } }));
    assert_eq!(one.len(), 64);
    assert_eq!(one, hash(json!({ "b": { "d": 3, "c": 2 }, "a": 1 })));
    for other in [json!({ "a": 1, "b": { "c": 2, "d": 4 } }), json!({ "a": 1 }), json!([1, 2]), json!([2, 1])]
    {
        assert_ne!(one, hash(other.clone()), "{other}");
    }
    assert_ne!(hash(json!([1, 2])), hash(json!([2, 1])), "the order of a list means something");
    assert_ne!(one, Part::new("b.md", "url", json!({ "a": 1, "b": { "c": 2, "d": 3 } })).hash());
}

#[test]
fn what_it_does_is_no_part_of_the_hash() {
    let part = Part::new("a.md", "url", json!(1));
    let hash = part.hash();
    assert_eq!(hash, part.doing("does it").hash());
}

#[test]
fn no_text_poses_as_another_line() {
    let part = Part::new("a\n  b.md", "k", json!(1))
        .doing("starts `x\r\n  mainstem.toml: nothing\u{1b}[2J\u{2028}`");
    let shown = part.to_string();
    assert!(shown.chars().all(|c| !c.is_control() && c != '\u{2028}'), "{shown:?}");
    assert_eq!(shown, r"a\n  b.md: starts `x\r\n  mainstem.toml: nothing\u{1b}[2J\u{2028}`");
    assert_eq!(part.lines().collect::<Vec<_>>(), [shown]);
}

#[test]
fn variables_are_those_in_braces() {
    let check =
        |text: &str, expected: &[&str]| assert_eq!(variables(text).collect::<Vec<_>>(), expected, "{text}");
    check("plain $HOME", &[]);
    check("Bearer ${TOKEN}", &["TOKEN"]);
    check("${A}${B:-x} ${C", &["A", "B"]);
}
