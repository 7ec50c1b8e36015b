//! Columns that wrap.

use super::*;

#[test]
fn cells_wrap_between_words_until_lines_fit() {
    let rows = || [["key".to_owned(), "one two three four five six".to_owned()]].into_iter();
    assert_eq!(wrapped(["A", "B"], rows(), 22), "A    B\nkey  one two three\n     four five six\n");
    assert_eq!(wrapped(["A", "B"], rows(), 80), text(["A", "B"], rows()));
    // A terminal that is too narrow cuts no word.
    assert_eq!(folded("a verylongword b", 4), ["a", "verylongword", "b"]);
}
