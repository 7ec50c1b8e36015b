//! Models of what threads do, tried in many orders.

use std::sync::Arc;

use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler},
};

/// Tries a model with `schedules` random schedules, and as many with few context switches at
/// unlikely places; a hundred times as many if `RUN_SLOW_TESTS` is set. What it does between its
/// points must be the same each time.
///
/// # Panics
/// Where the model does, or can't go on; with the schedule that led there.
pub fn in_all_orders(schedules: usize, model: impl Fn() + Send + Sync + 'static) {
    let schedules = if std::env::var_os("RUN_SLOW_TESTS").is_some() { schedules * 100 } else { schedules };
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    let model = Arc::new(model);
    let again = model.clone();
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(move || again());
    Runner::new(PctScheduler::new(3, schedules), config).run(move || model());
}
