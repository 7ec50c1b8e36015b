//! How hard a model thinks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How hard a model thinks, as vendors name it. A vendor refuses those that the model lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Effort {
    /// The model does not think.
    None,
    /// As little as possible.
    Minimal,
    /// Little.
    Low,
    /// In between.
    Medium,
    /// Much.
    High,
    /// More than `high`.
    Xhigh,
    /// As much as possible.
    Max,
}

impl Effort {
    /// The names, the least effort first.
    pub const NAMES: [(&str, Self); 7] = [
        ("none", Self::None),
        ("minimal", Self::Minimal),
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("xhigh", Self::Xhigh),
        ("max", Self::Max),
    ];
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, effort)| effort == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}
