//! Names of decision files, and the pages that they cite.

use super::{check as problems, cited};

fn check(path: &str, fits: bool) {
    assert_eq!(problems(&[path.to_owned()]).is_empty(), fits, "{path}");
}

#[test]
fn a_decision_is_numbered_and_titled() {
    check("docs/decisions/0001-one-log.md", true);
    check("docs/decisions/0120-http2-is-off.md", true);
    check("docs/layers.md", true);
    check("docs/decisions/1-one-log.md", false);
    check("docs/decisions/00001-one-log.md", false);
    check("docs/decisions/0001.md", false);
    check("docs/decisions/0001-.md", false);
    check("docs/decisions/0001-One-log.md", false);
    check("docs/decisions/0001-one log.md", false);
    check("docs/decisions/0001-one-log.txt", false);
    check("docs/decisions/more/0001-one-log.md", false);
    check("docs/decisions/README.md", false);
}

#[test]
fn a_decision_cites_pages_of_this_repository() {
    let files = ["docs/layers.md", "docs/decisions/0001-one-log.md"].map(String::from);
    let check = |text: &str, expected: &[&str]| {
        let found: Vec<_> = cited("d.md", text, &files).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("See docs/layers.md, [one](0001-one-log.md) and `layers.md`.", &[]);
    check("One.\n`plan.md` says so.", &["d.md:2: plan.md is not a page of this repository"]);
}
