//! Row 5: the cost of Mainstem itself, with models that answer at once.

use anyhow::Result;

use super::Bench;
use crate::{sample::Sample, script::Load, table::Figure, turns::turn};

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for children in [10, 100, 1000] {
        // A million events, with the starts of the children.
        let load = Load::new(children, bench.scaled(1_000_000 / children));
        let event = bench.median(10, || Ok(Sample::in_process(&load)?.per_delta()))?;
        let label = format!("CPU per event in process, K = {children}");
        figures.push(Figure::new(label, event, " µs").at_most(0.5));
    }
    let turn = bench.median(100, || turn(100))?;
    figures.push(Figure::new("CPU per scripted turn that calls a tool", turn, " µs").at_most(5.0));
    Ok(figures)
}
