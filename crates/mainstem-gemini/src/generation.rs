//! What a model's name says about it: whether it speaks as Gemini 3 does.

/// The generations that requests differ for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Gemini 1 and 2: thinks by a budget of tokens, and asks for no signatures.
    Two,
    /// Gemini 3 and, for all that is known, what comes after it: thinks by level, refuses calls
    /// without a signature, and takes data in the responses of functions.
    Three,
    /// No Gemini: Gemma, a tuned model.
    Other,
}

impl Generation {
    /// Of a model's name, with or without a path. What names no number is an alias of a recent
    /// model: `gemini-flash-latest`.
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
