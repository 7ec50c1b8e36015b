//! Measurements of this process: processor time, memory, the time; and medians.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};

/// Returns the processor time of this process, with that of the kernel on its behalf.
pub(crate) fn cpu() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// Returns the time of day: the one clock that events, chunks of the server and this process share.
pub(crate) fn now() -> Duration {
    clock(ClockId::Realtime)
}

fn clock(id: ClockId) -> Duration {
    Duration::try_from(clock_gettime(id)).unwrap_or_default()
}

/// Returns the resident memory of this process in bytes.
pub(crate) fn resident() -> Result<u64> {
    let pages = fs::read_to_string("/proc/self/statm").context("memory is measured on Linux only")?;
    let pages: u64 = pages.split(' ').nth(1).context("/proc/self/statm has a second column")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Raises the limit of open connections as far as the system allows.
pub(crate) fn allow_many_connections() -> Result<()> {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })
        .context("can't raise the limit of open files")
}

/// Returns the median; 0 of no values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// Returns the value below which this share of all lies; 0 of none.
pub(crate) fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
}

/// Figures of Mainstem and of the comparison, measured in turn, so that disturbances affect both.
#[derive(Clone, Debug)]
pub(crate) struct Pairs(Vec<(f64, f64)>);

impl Pairs {
    /// Measures so many pairs.
    pub(crate) fn take(
        times: u32,
        mut ours: impl FnMut() -> Result<f64>,
        mut theirs: impl FnMut() -> Result<f64>,
    ) -> Result<Self> {
        (0..times).map(|_| Ok((ours()?, theirs()?))).collect::<Result<_>>().map(Self)
    }

    /// Returns the median of ours.
    pub(crate) fn ours(&self) -> f64 {
        self.median(|ours, _| ours)
    }

    /// Returns the median of theirs.
    pub(crate) fn theirs(&self) -> f64 {
        self.median(|_, theirs| theirs)
    }

    /// Returns the median of the ratios of ours to theirs.
    pub(crate) fn ratio(&self) -> f64 {
        self.median(|ours, theirs| ours / theirs)
    }

    /// Returns the median of the differences of ours and theirs.
    pub(crate) fn difference(&self) -> f64 {
        self.median(|ours, theirs| ours - theirs)
    }

    fn median(&self, of: impl Fn(f64, f64) -> f64) -> f64 {
        median(self.0.iter().map(|(ours, theirs)| of(*ours, *theirs)))
    }
}

#[cfg(test)]
mod tests;
