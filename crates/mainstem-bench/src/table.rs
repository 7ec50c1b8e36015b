//! The figures, as a table for people or as lines of JSON.

use std::fmt;

use serde::Serialize;

/// One figure of a row.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) row: u8,
    /// What was measured, and how.
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The goal; absent for figures without one.
    pub(crate) goal: Option<Bound>,
    /// What fails the run if it is hard, if that is not the goal.
    #[serde(skip)]
    pub(crate) limit: Option<Bound>,
    /// Whether missing the limit fails the run.
    pub(crate) hard: bool,
}

/// The bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { row: 0, what: what.into(), value, unit, goal: None, limit: None, hard: false }
    }

    pub(crate) fn at_most(self, bound: f64) -> Self {
        Self { goal: Some(Bound::AtMost(bound)), ..self }
    }

    /// Sets a limit beyond the goal: what varies from run to run does not fail one.
    pub(crate) fn limited_to(self, bound: f64) -> Self {
        Self { limit: Some(Bound::AtMost(bound)), ..self }
    }

    pub(crate) fn at_least(self, bound: f64) -> Self {
        Self { goal: Some(Bound::AtLeast(bound)), ..self }
    }

    fn is_reached(&self) -> Option<bool> {
        Some(self.goal?.is_met_by(self.value))
    }

    /// Returns `true` if it is a hard one that was missed.
    pub(crate) fn fails(&self) -> bool {
        let limit = self.limit.or(self.goal);
        self.hard && limit.is_some_and(|limit| !limit.is_met_by(self.value))
    }

    fn cells(&self) -> [String; 5] {
        let reached = match self.is_reached() {
            None => "",
            Some(true) => "yes",
            Some(false) if self.fails() => "NO (hard)",
            Some(false) => "no",
        };
        let goal = self.goal.map_or_else(String::new, |bound| bound.to_string());
        [self.row.to_string(), self.what.clone(), number(self.value) + self.unit, goal, reached.to_owned()]
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "≤ {bound}"),
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
        }
    }
}

/// Formats three significant digits.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        below if below < 0.1 => 3,
        below if below < 10.0 => 2,
        below if below < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Returns a Markdown table with aligned columns.
pub(crate) fn text(figures: &[Figure]) -> String {
    let head = ["row", "what", "measured", "goal", "reached"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(figures.iter().map(Figure::cells)).collect();
    let widths: [usize; 5] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let line = |cells: &[String; 5]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!(" {cell:width$} |"));
        format!("|{}", cells.collect::<String>())
    };
    let rule = line(&widths.map(|width| "-".repeat(width)));
    let mut lines: Vec<_> = rows.iter().map(line).collect();
    lines.insert(1, rule);
    lines.join("\n")
}

/// Returns one object a line.
pub(crate) fn json(figures: &[Figure]) -> serde_json::Result<String> {
    Ok(figures.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?.join("\n"))
}

#[cfg(test)]
mod tests;
