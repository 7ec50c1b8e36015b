//! Diagnostics as a short table for people.

use std::{collections::HashMap, fmt};

use super::{Diagnostics, InvocationDiagnostics};

const HEAD: [&str; 8] = ["agent", "events", "read", "lost", "unread", "gaps", "first token", "work"];

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let twins = Twins::new(&self.invocations);
        let rows: Vec<_> = self.invocations.iter().map(|invocation| row(invocation, &twins)).collect();
        let mut widths = HEAD.map(str::len);
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        line(f, &HEAD.map(str::to_owned), &widths)?;
        for (row, invocation) in rows.iter().zip(&self.invocations) {
            writeln!(f)?;
            line(f, row, &widths)?;
            if let Some(reason) = &invocation.fallback {
                write!(f, "  not streamed: {reason}")?;
            }
        }
        match self.unknown {
            0 => Ok(()),
            unknown => write!(f, "\n{unknown} earlier events were no longer kept when this was asked for"),
        }
    }
}

fn line(f: &mut fmt::Formatter<'_>, cells: &[String; 8], widths: &[usize; 8]) -> fmt::Result {
    write!(f, "{:<1$}", cells[0], widths[0])?;
    cells.iter().zip(widths).skip(1).try_for_each(|(cell, width)| write!(f, "  {cell:>width$}"))
}

fn row(invocation: &InvocationDiagnostics, twins: &Twins<'_>) -> [String; 8] {
    let InvocationDiagnostics { received, forwarded, lost, unread, gaps, .. } = *invocation;
    let [received, forwarded, lost, unread, gaps] =
        [received, forwarded, lost, unread, gaps].map(|n| n.to_string());
    let time = |millis: Option<u64>| millis.map_or_else(|| "-".to_owned(), |millis| format!("{millis} ms"));
    let (first, work) = (time(invocation.first_token_ms), time(invocation.work_ms));
    [twins.name(invocation), received, forwarded, lost, unread, gaps, first, work]
}

/// Numbers instances of one agent in the order of their start.
struct Twins<'a> {
    of_agent: HashMap<&'a str, usize>,
    number: HashMap<&'a str, usize>,
}

impl<'a> Twins<'a> {
    fn new(invocations: &'a [InvocationDiagnostics]) -> Self {
        let (mut of_agent, mut number) = (HashMap::new(), HashMap::new());
        for invocation in invocations {
            let Some(key) = &invocation.agent_key else { continue };
            number.entry(key.as_str()).or_insert_with(|| {
                let count = of_agent.entry(&*invocation.agent_id).or_default();
                *count += 1;
                *count
            });
        }
        Self { of_agent, number }
    }

    fn name(&self, invocation: &InvocationDiagnostics) -> String {
        let InvocationDiagnostics { agent_key, agent_id, depth, turn, task_id, .. } = invocation;
        let number = agent_key.as_ref().and_then(|key| self.number.get(key.as_str()));
        let has_twin = self.of_agent.get(&**agent_id).is_some_and(|count| *count > 1);
        let number = number.filter(|_| has_twin).map_or_else(String::new, |number| format!("#{number}"));
        let task = if task_id.is_some() { " (task)" } else { "" };
        let turn = if *turn > 1 { format!(" turn {turn}") } else { String::new() };
        format!("{}{agent_id}{number}{task}{turn}", "  ".repeat(usize::from(*depth)))
    }
}
