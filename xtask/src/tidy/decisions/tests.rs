//! Names of decision files.

use super::check as problems;

fn check(path: &str, fits: bool) {
    assert_eq!(problems(&[path.to_owned()]).is_empty(), fits, "{path}");
}

#[test]
fn a_decision_is_numbered_and_titled() {
    check("docs/decisions/0001-one-log.md", true);
    check("docs/decisions/0120-http2-is-off.md", true);
    check("docs/guide.md", true);
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
