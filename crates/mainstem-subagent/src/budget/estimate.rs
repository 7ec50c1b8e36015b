//! An estimate of what a model call uses, before it is made.

use mainstem_message::Usage;
use mainstem_model::ModelRequest;
use mainstem_policy::estimated_usage;

/// Returns an estimate: the bytes of the request ÷ 4, and all the output that it allows.
pub(super) fn of(request: &ModelRequest) -> Usage {
    estimated_usage(request.size() as u64, request.options.output_estimate())
}

#[cfg(test)]
mod tests;
