//! Finds the place that is most like a text that does not occur, so that the model can correct its
//! edit.

use crate::text::cut;

/// The number of lines that are compared.
const COMPARED: usize = 20_000;

/// The number of bytes of a line that are compared and shown.
const LINE: usize = 200;

/// The similarity below which lines are unlike.
const LIKE: f64 = 0.6;

/// Returns a sentence on the place that is most like `old`.
pub(super) fn hint(content: &str, old: &str) -> String {
    if old.lines().all(is_numbered) {
        return "leave out the line numbers and tabs that read_file puts before the lines".to_owned();
    }
    let Some((skipped, first)) = old.lines().enumerate().find(|(_, line)| !line.trim().is_empty()) else {
        return "it is only white space".to_owned();
    };
    let lines: Vec<_> = content.lines().take(COMPARED).collect();
    let Some((at, likeness)) = nearest(&lines, first) else {
        return "nothing in the file is like it; read the file first".to_owned();
    };
    let wanted = old.lines().skip(skipped);
    let differs = wanted.zip(&lines[at..]).position(|(wanted, line)| wanted != *line);
    let number = |offset: usize| at + offset + 1;
    match differs {
        Some(offset) if offset > 0 => format!(
            "it begins as line {} does, but then line {} is {}",
            number(0),
            number(offset),
            quoted(lines[at + offset])
        ),
        _ if likeness >= 1.0 => {
            format!("line {} differs in white space only: {}", number(0), quoted(lines[at]))
        }
        _ => format!("the nearest is line {}: {}", number(0), quoted(lines[at])),
    }
}

fn is_numbered(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(number, _)| number.parse::<u64>().is_ok())
}

/// Returns the most similar line, and its similarity: 1 if it differs only in the white space
/// around it.
fn nearest(lines: &[&str], wanted: &str) -> Option<(usize, f64)> {
    let likeness = |line: &&str| match (line.trim(), wanted.trim()) {
        // An exact line is preferred to one that is indented otherwise.
        _ if *line == wanted => 2.0,
        (line, wanted) if line == wanted => 1.0,
        (line, wanted) if line.len() > LINE || wanted.len() > LINE || line.is_empty() => 0.0,
        (line, wanted) if line.len() > 2 * wanted.len() || wanted.len() > 2 * line.len() => 0.0,
        (line, wanted) => strsim::normalized_levenshtein(line, wanted).min(0.99),
    };
    let mut best = None;
    for (at, likeness) in lines.iter().map(likeness).enumerate() {
        if likeness >= LIKE && best.is_none_or(|(_, best)| likeness > best) {
            best = Some((at, likeness));
        }
    }
    best
}

fn quoted(line: &str) -> String {
    format!("{:?}", cut(line, LINE, 0))
}
