//! The rows of the contract. Each is a function from the bench to figures; this file has their
//! order, and their bounds.

mod depth;
mod events;
mod fairness;
mod in_process;
mod latency;
mod memory;
mod readers;
mod remote;
mod stall;
mod start;
mod threads;

use anyhow::{Result, ensure};

use crate::{
    measure::{Pairs, median},
    server::Server,
    table::Figure,
};

/// The shared state of the rows.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) server: Server,
    quick: bool,
}

struct Row {
    number: u8,
    /// Whether a miss fails the run.
    hard: bool,
    measure: fn(&Bench) -> Result<Vec<Figure>>,
}

const ROWS: [Row; 15] = [
    Row { number: 1, hard: false, measure: events::few },
    Row { number: 2, hard: false, measure: events::many },
    Row { number: 3, hard: false, measure: events::paced },
    Row { number: 4, hard: true, measure: depth::measure },
    Row { number: 5, hard: true, measure: in_process::measure },
    Row { number: 6, hard: false, measure: latency::measure },
    Row { number: 7, hard: false, measure: memory::measure },
    Row { number: 8, hard: false, measure: start::cpu },
    Row { number: 9, hard: false, measure: start::first_event },
    Row { number: 10, hard: true, measure: stall::measure },
    Row { number: 11, hard: true, measure: fairness::measure },
    Row { number: 13, hard: false, measure: remote::measure },
    Row { number: 14, hard: false, measure: threads::measure },
    Row { number: 15, hard: false, measure: start::first_run },
    Row { number: 16, hard: false, measure: readers::measure },
];

impl Bench {
    pub(crate) fn start(quick: bool) -> Result<Self> {
        Ok(Self { server: Server::start()?, quick })
    }

    /// Repetitions, or deltas: a tenth of them in a quick run, at least one.
    pub(crate) fn scaled(&self, amount: u32) -> u32 {
        if self.quick { (amount / 10).max(1) } else { amount }
    }

    /// Returns the median of so many repetitions.
    fn median(&self, times: u32, mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
        Ok(median((0..self.scaled(times)).map(|_| measure()).collect::<Result<Vec<_>>>()?))
    }

    /// Measures ours and theirs in turn.
    fn pairs(
        &self,
        times: u32,
        ours: impl FnMut() -> Result<f64>,
        theirs: impl FnMut() -> Result<f64>,
    ) -> Result<Pairs> {
        Pairs::take(self.scaled(times), ours, theirs)
    }
}

/// Measures the rows with these numbers, or all rows if `numbers` is empty.
pub(crate) fn run(bench: &Bench, numbers: &[u8]) -> Result<Vec<Figure>> {
    for number in numbers {
        ensure!(ROWS.iter().any(|row| row.number == *number), "there is no row {number}");
    }
    let mut figures = Vec::new();
    for row in ROWS.iter().filter(|row| numbers.is_empty() || numbers.contains(&row.number)) {
        eprintln!("row {} …", row.number);
        let taken = (row.measure)(bench)?;
        figures.extend(taken.into_iter().map(|figure| Figure { row: row.number, hard: row.hard, ..figure }));
    }
    Ok(figures)
}
