//! Rows as columns of text.

use crate::sanitize;

/// The characters of a prompt that fit into a line.
const PROMPT: usize = 48;

/// Returns a prompt in one line of a table.
pub(crate) fn prompt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > PROMPT {
        true => line.chars().take(PROMPT - 1).chain(['…']).collect(),
        false => line,
    }
}

/// Returns a line for the heads and one for each row, in columns as wide as their content.
pub(crate) fn text<const N: usize>(heads: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows = rows.map(|row| row.map(|cell| sanitize::clean(&cell).replace(['\n', '\t'], " ")));
    let rows: Vec<_> = [heads.map(str::to_owned)].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Returns the same, with cells that wrap between words so that lines fit into `width`.
pub(crate) fn wrapped<const N: usize>(
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    width: usize,
) -> String {
    let rows: Vec<_> = [heads.map(str::to_owned)].into_iter().chain(rows).collect();
    let widths = fitting(&rows, width);
    let mut text = String::new();
    for row in &rows {
        let cells: [Vec<String>; N] = std::array::from_fn(|column| folded(&row[column], widths[column]));
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        for line in 0..height {
            let cells = cells
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{:width$}", cell.get(line).map_or("", String::as_str)));
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
    }
    text
}

/// The narrowest column that wraps.
const NARROW: usize = 12;

/// Returns the widths of the columns; the widest become narrower until a line fits.
fn fitting<const N: usize>(rows: &[[String; N]], width: usize) -> [usize; N] {
    let natural = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let mut widths: [usize; N] = std::array::from_fn(|column| natural(column).unwrap_or_default());
    while widths.iter().sum::<usize>() + 2 * N.saturating_sub(1) > width {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROW => *widest -= 1,
            _ => break,
        }
    }
    widths
}

/// Returns the lines of a text; a longer word has a line of its own.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines
            .last_mut()
            .filter(|line| line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => line.push_str(&format!(" {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests;
