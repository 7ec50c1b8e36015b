//! Rows with and without a test.

use super::*;

#[test]
fn a_row_without_its_test_is_a_problem() {
    let page = "| what | default | beyond it | test |\n|---|---|---|---|\n| runs | 64 | 429 | `is_there` |\n| a | 1 | b | `is_gone` |\n";
    let functions =
        functions("#[test]\nfn is_there() {}\n    async fn inner(x: u8) {}\nlet f = x.fn ();\n").collect();
    assert_eq!(functions, BTreeSet::from(["inner".to_owned(), "is_there".to_owned()]));
    let problems: Vec<_> = check(page, &functions).iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["docs/limits.md:4: there is no test `is_gone`"]);
}
