//! Paths.

use crate::fixture;

#[test]
fn paths_are_compared_by_whole_segments() {
    let check = |path: &str, above: &str, expected: bool| {
        assert_eq!(fixture::source(path).is_under(above), expected, "{path} under {above}");
    };
    check("reviewer", "s", true);
    check("reviewer", "s/reviewer", true);
    check("reviewer/tester", "s/reviewer", true);
    check("reviewer/tester", "s/reviewer/tester", true);
    check("reviewer", "s/review", false);
    check("reviewer", "s/reviewer/tester", false);
    check("reviewers", "s/reviewer", false);
    check("tester", "s/reviewer", false);
    check("reviewer", "reviewer", false);
    check("reviewer", "", false);
}
