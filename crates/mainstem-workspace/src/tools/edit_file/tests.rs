//! The results for the model.

use serde_json::json;

use super::MAX_BYTES;
use crate::rig::Rig;

#[test]
fn an_edit_says_where_and_a_failed_one_changes_nothing() {
    let rig = Rig::with(&[("a.rs", "let a = 1;\r\nlet b = 1;\r\nlet c")]);
    let call = |old: &str, new: &str, all: bool| json!({ "path": "a.rs", "old": old, "new": new, "replace_all": all });
    let many = rig.err("edit_file", call("= 1", "= 2", false));
    assert!(many.starts_with("\"a.rs\" is unchanged: old occurs 2 times (lines 1, 2); "), "{many}");
    let none = rig.err("edit_file", call("let d = 1;", "", false));
    assert!(none.contains("the nearest is line 1: \"let a = 1;\""), "{none}");
    assert_eq!(rig.read("a.rs"), b"let a = 1;\r\nlet b = 1;\r\nlet c");
    assert_eq!(rig.ok("edit_file", call("let a = 1;\n", "", false)), "edited \"a.rs\" in 1 place, line 1");
    assert_eq!(rig.ok("edit_file", call("let", "var", true)), "edited \"a.rs\" in 2 places, lines 1, 2");
    assert_eq!(rig.read("a.rs"), b"var b = 1;\r\nvar c");
}

#[test]
fn what_is_too_large_is_not_read() {
    let rig = Rig::new();
    std::fs::File::create(rig.at("large")).unwrap().set_len(MAX_BYTES + 1).unwrap();
    let error = rig.err("edit_file", json!({ "path": "large", "old": "a", "new": "b" }));
    assert_eq!(error, "\"large\" is larger than 16777216 bytes, which is too much to edit");
}
