//! Breaks text into rows of a terminal. Pure.

use ratatui::text::Span;

/// Returns a line in rows of so many cells, each as full as possible. A character that is wider
/// than a row has one to itself.
pub(crate) fn folded(line: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut column = 0;
    for c in line.chars() {
        let cells = cells(c);
        if column + cells > width && column > 0 {
            rows.push(String::new());
            column = 0;
        }
        rows.last_mut().into_iter().for_each(|row| row.push(c));
        column += cells;
    }
    rows
}

/// Returns a line in rows of at most so many cells, broken at blanks where there are some.
pub(crate) fn wrapped(mut line: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    while let Some(end) = first_beyond(line, width) {
        // A blank in the second half of the row is a good place.
        let blank = line[..end].rfind(' ').filter(|at| *at > end / 2);
        let (row, rest) = match blank {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => line.split_at(end),
        };
        rows.push(row.to_owned());
        line = rest;
    }
    rows.push(line.to_owned());
    rows
}

/// Returns where the characters begin that have no room in a row, at least behind one; `None` if
/// all have room.
fn first_beyond(line: &str, width: usize) -> Option<usize> {
    let mut column = 0;
    let beyond = line.char_indices().find(|(at, c)| {
        column += cells(*c);
        column > width && *at > 0
    });
    beyond.map(|(at, _)| at)
}

fn cells(c: char) -> usize {
    if c.is_ascii() { 1 } else { Span::raw(c.to_string()).width() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_full() {
        let check =
            |line: &str, width, expected: &[&str]| assert_eq!(folded(line, width), expected, "{line}");
        check("", 4, &[""]);
        check("one two three", 5, &["one t", "wo th", "ree"]);
        check("日本語", 5, &["日本", "語"]);
        check("日本", 1, &["日", "本"]);
        check("a日", 2, &["a", "日"]);
    }

    #[test]
    fn lines_are_broken_at_blanks() {
        let check =
            |line: &str, width, expected: &[&str]| assert_eq!(wrapped(line, width), expected, "{line}");
        check("", 4, &[""]);
        check("one two three", 9, &["one two", "three"]);
        check("one two three", 13, &["one two three"]);
        check("incomprehensible", 6, &["incomp", "rehens", "ible"]);
        check("a incomprehensible", 6, &["a inco", "mprehe", "nsible"]);
        check("日本語", 4, &["日本", "語"]);
        check("日本", 1, &["日", "本"]);
    }
}
