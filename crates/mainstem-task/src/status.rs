//! Which changes of a task's status are legal. Pure.

use mainstem_event::TaskStatus::{self, Cancelled, Completed, Failed, Pending, Running, WaitingConfirm};

/// Whether a task of the first status may become one of the second.
///
/// ```
/// use mainstem_event::TaskStatus::*;
/// use mainstem_task::allows;
///
/// assert!(allows(Running, Completed));
/// assert!(!allows(Completed, Failed), "terminal is final");
/// ```
pub const fn allows(from: TaskStatus, to: TaskStatus) -> bool {
    match from {
        Pending => matches!(to, Running | Failed | Cancelled),
        Running => matches!(to, WaitingConfirm | Completed | Failed | Cancelled),
        WaitingConfirm => matches!(to, Running | Completed | Failed | Cancelled),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
