//! What is compared, and which items are foreign.

use super::*;

fn files(path: &str, text: &str) -> Files {
    [(path.to_owned(), text.to_owned())].into()
}

#[test]
fn each_item_that_differs_is_named() {
    #[track_caller]
    fn check(fresh: &Files, old: &Files, expected: &[&str]) {
        let problems: Vec<_> = compare(fresh, old).iter().map(ToString::to_string).collect();
        assert_eq!(problems, expected);
    }
    let (one, two) = (files("docs/api/a.txt", "pub fn a::x()\n"), files("docs/api/a.txt", "pub fn a::y()\n"));
    check(&one, &one, &[]);
    check(
        &one,
        &two,
        &["docs/api/a.txt:1: removed: pub fn a::y()", "docs/api/a.txt:1: added: pub fn a::x()"],
    );
    check(&one, &Files::new(), &["docs/api/a.txt:1: added: pub fn a::x()"]);
    check(&Files::new(), &one, &["docs/api/a.txt:1: is the listing of no library"]);
}

#[test]
fn foreign_items_have_their_crate_and_the_libraries_that_show_them() {
    let items = [
        "pub fn mainstem_task::TaskSet::token(&self) -> &tokio_util::sync::CancellationToken",
        "pub fn mainstem_task::TaskSet::list(&self) -> core::option::Option<alloc::vec::Vec<u8>>",
        "impl serde_core::ser::Serialize for mainstem_task::TaskStatus",
    ];
    let listings = [("mainstem-task".to_owned(), items.map(str::to_owned).to_vec())].into();
    let page = foreign::page(&listings);
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(
        rows,
        [
            "| `serde_core` | `serde_core::ser::Serialize` | `mainstem-task` |",
            "| `tokio_util` | `tokio_util::sync::CancellationToken` | `mainstem-task` |",
        ]
    );
}
