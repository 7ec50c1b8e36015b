//! The roles that inputs over HTTP can have: `[serve] input_roles`.

use mainstem::message::Role;
use serde::{Deserialize, Deserializer};

/// A role of an input over HTTP. Results of tools are not inputs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InputRole {
    User,
    System,
    Assistant,
}

impl From<InputRole> for Role {
    fn from(role: InputRole) -> Self {
        match role {
            InputRole::User => Self::User,
            InputRole::System => Self::System,
            InputRole::Assistant => Self::Assistant,
        }
    }
}

/// Reads the roles besides `user`, which every input can have.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<InputRole>, D::Error> {
    let roles = Vec::<InputRole>::deserialize(deserializer)?;
    Ok(roles.into_iter().filter(|role| *role != InputRole::User).collect())
}

/// Returns what the roles do.
#[expect(clippy::ptr_arg, reason = "a policy takes the field's type")]
pub(super) fn does(roles: &Vec<InputRole>) -> String {
    let names: Vec<_> = roles.iter().map(|role| format!("{role:?}").to_lowercase()).collect();
    format!("lets HTTP callers send inputs of the role {}", names.join(", "))
}
