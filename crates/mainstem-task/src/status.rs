//! Legal changes of a task's status. Pure.

use mainstem_event::TaskStatus::{self, Cancelled, Completed, Failed, Pending, Running, WaitingConfirm};

/// Returns `true` if the state machine allows this change of status.
///
/// ```
/// use mainstem_event::TaskStatus::*;
/// use mainstem_task::can_become;
///
/// assert!(can_become(Running, Completed));
/// assert!(!can_become(Completed, Failed), "terminal is final");
/// ```
pub const fn can_become(from: TaskStatus, to: TaskStatus) -> bool {
    match from {
        Pending => matches!(to, Running | Failed | Cancelled),
        Running => matches!(to, WaitingConfirm | Completed | Failed | Cancelled),
        WaitingConfirm => matches!(to, Running | Completed | Failed | Cancelled),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
