//! A table: columns as wide as their cells, or as there is room for.

use ratatui::{style::Stylize, text::Span};

use super::flow::wrap;

/// The narrowest column that is made narrower, in cells.
const NARROW: usize = 6;

/// Between two columns.
const BETWEEN: &str = " │ ";

type Cell = Vec<Span<'static>>;

/// The rows so far; the first is the head.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
    cell: Cell,
}

impl Table {
    pub(super) fn text(&mut self, span: Span<'static>) {
        self.cell.push(span);
    }

    pub(super) fn end_cell(&mut self) {
        self.row.push(std::mem::take(&mut self.cell));
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Returns the table as lines of at most `width` cells, if its columns can be that narrow.
    pub(super) fn lines(self, width: usize) -> Vec<Cell> {
        let widths = self.widths(width);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(row_lines(row, &widths));
            if index == 0 {
                let rules: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(vec![rules.join("─┼─").dim()]);
            }
        }
        lines
    }

    /// Returns the width of each column: the widest are made narrower until all fit.
    fn widths(&self, width: usize) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell: &Cell| cell.iter().map(Span::width).sum::<usize>()).max().unwrap_or(0).max(1)
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let room = width.saturating_sub(columns.saturating_sub(1) * 3);
        let fits = |most: usize| widths.iter().map(|width| (*width).min(most)).sum::<usize>() <= room;
        // The greatest width to which all columns can be limited.
        let (mut least, mut most) = (NARROW, widths.iter().copied().max().unwrap_or(0).max(NARROW));
        while least < most {
            let middle = (least + most).div_ceil(2);
            (least, most) = if fits(middle) { (middle, most) } else { (least, middle - 1) };
        }
        widths.into_iter().map(|width| width.min(least)).collect()
    }
}

/// Returns a row, whose cells wrap.
fn row_lines(row: &[Cell], widths: &[usize]) -> Vec<Cell> {
    let cells: Vec<Vec<Cell>> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| row.get(column).map(|cell| wrap(cell, *width)).unwrap_or_default())
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |y: usize| {
        let mut line = Vec::new();
        for (column, width) in widths.iter().enumerate() {
            let cell = cells[column].get(y).cloned().unwrap_or_default();
            let used: usize = cell.iter().map(Span::width).sum();
            line.extend(cell);
            if column + 1 < widths.len() {
                line.push(" ".repeat(width.saturating_sub(used)).into());
                line.push(BETWEEN.dim());
            }
        }
        line
    };
    (0..height).map(line).collect()
}
