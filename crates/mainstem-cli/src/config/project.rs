//! What a project's file can do to the user's own settings.

use super::{Setting, switch::OnOff, table::Narrow};

/// The project's value is used, and the user's if it has none.
pub(super) fn chooses<T>(project: T, _user: &T) -> T {
    project
}

/// The lower limit applies.
pub(super) fn lowers<T: Ord + Clone>(
    project: Option<Setting<T>>,
    user: &Option<Setting<T>>,
) -> Option<Setting<T>> {
    project.into_iter().chain(user.clone()).min_by(|one, other| one.value.cmp(&other.value))
}

/// What the user turns off stays off.
pub(super) fn turns_off<T: OnOff + Clone>(project: T, user: &T) -> T {
    if user.state() == Some(false) { user.clone() } else { project }
}

/// Each value of a table is narrowed by its own policy.
pub(super) fn narrows<T: Narrow>(project: T, user: &T) -> T {
    project.narrowed_by(user)
}
