//! Models of threads, run under many schedules.

use std::sync::Arc;

use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler},
};

/// Runs a model under `schedules` random schedules, and as many with few context switches at
/// unlikely places; a hundred times as many if `RUN_SLOW_TESTS` is set. Between its synchronization
/// points it must be deterministic.
///
/// # Panics
/// If the model panics or deadlocks; with its schedule.
pub fn in_all_orders(schedules: usize, model: impl Fn() + Send + Sync + 'static) {
    let schedules = if std::env::var_os("RUN_SLOW_TESTS").is_some() { schedules * 100 } else { schedules };
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    let model = Arc::new(model);
    let again = model.clone();
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(move || again());
    Runner::new(PctScheduler::new(3, schedules), config).run(move || model());
}
