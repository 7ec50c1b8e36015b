//! An estimate of what a model call uses, before it is made.

use mainstem_message::Usage;
use mainstem_model::ModelRequest;
use mainstem_policy::estimated_usage;

/// The output limit of a request without one: what most models have.
const USUAL_OUTPUT: u64 = 4_096;

/// Returns an estimate: the bytes of the request ÷ 4, and all the output that it allows.
pub(super) fn of(request: &ModelRequest) -> Usage {
    estimated_usage(request.size() as u64, request.options.max_output_tokens.map_or(USUAL_OUTPUT, u64::from))
}

#[cfg(test)]
mod tests;
