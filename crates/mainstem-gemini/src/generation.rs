//! The generation of a model, by its name.

/// The generations whose requests differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Gemini 1 and 2: budgets of tokens for thinking, no signatures.
    Two,
    /// Gemini 3 and, presumably, later ones: levels of thinking, refused calls without a signature,
    /// and data in the responses of functions.
    Three,
    /// Another model: Gemma, a tuned model.
    Other,
}

impl Generation {
    /// Returns the generation of a model's name, with or without a path. A name without a number is
    /// an alias of a recent model: `gemini-flash-latest`.
    pub(crate) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or_default();
        match name.strip_prefix("gemini-") {
            Some(version) if version.starts_with(['1', '2']) => Self::Two,
            Some(_) => Self::Three,
            None => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests;
