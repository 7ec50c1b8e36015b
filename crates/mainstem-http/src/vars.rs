//! Settings from the environment, or from wherever a program keeps them.

/// The value of a variable, without the space and the line break that come with copying; nothing if nothing is left.
pub fn trimmed(var: impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}
