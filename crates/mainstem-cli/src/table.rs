//! Rows as columns of text.

use crate::sanitize;

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
