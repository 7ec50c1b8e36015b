//! Listings.

use serde_json::json;

use crate::rig::Rig;

#[test]
fn directories_end_in_a_slash_and_depth_bounds() {
    let rig = Rig::with(&[("b/c/d.txt", ""), ("a.txt", ""), (".git/HEAD", ""), (".gitignore", "a.txt\n")]);
    std::os::unix::fs::symlink("b/c", rig.at("link")).unwrap();
    assert_eq!(rig.ok("list_files", json!({})), ".gitignore\na.txt\nb/\nlink -> b/c");
    assert_eq!(
        rig.ok("list_files", json!({ "depth": 3 })),
        ".gitignore\na.txt\nb/\nb/c/\nb/c/d.txt\nlink -> b/c"
    );
    assert_eq!(rig.ok("list_files", json!({ "path": "b" })), "b/c/");
    rig.workspace.create_inside("empty").unwrap();
    assert_eq!(rig.ok("list_files", json!({ "path": "empty" })), "[the directory is empty]");
}

#[test]
fn names_can_not_break_the_list() {
    let rig = Rig::with(&[("a\nb", "")]);
    assert_eq!(rig.ok("list_files", json!({})), "a\\nb");
}

#[test]
fn many_entries_are_counted() {
    let rig = Rig::new();
    (0..1200).for_each(|number| rig.write(&format!("f{number:04}"), ""));
    let listed = rig.ok("list_files", json!({}));
    assert!(
        listed.ends_with("f0999\n[and 200 more; give the path of a directory or a smaller depth]"),
        "{listed}"
    );
}
