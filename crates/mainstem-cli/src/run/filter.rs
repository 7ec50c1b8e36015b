//! The filter of the events to show.

use mainstem_event::EventFilter;

use crate::args;

/// Returns the filter of the flags; paths begin at the root, whose name may be omitted.
pub(super) fn filter(args: &args::Run, session: &str) -> EventFilter {
    let mut filter = EventFilter::new();
    if let Some(agent) = &args.only_agent {
        filter = filter.with_agent(agent);
    }
    if let Some(depth) = args.shown_depth {
        filter = filter.with_max_depth(depth);
    }
    if let Some(path) = &args.under {
        let path = path.trim_matches('/');
        let below =
            path.strip_prefix("main").filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(path);
        let below = below.trim_start_matches('/');
        filter = filter.with_path(if below.is_empty() {
            session.to_owned()
        } else {
            format!("{session}/{below}")
        });
    }
    filter
}

/// Returns the warning for a path of `--under` at which no agent has run.
pub(super) fn unmatched(args: &args::Run) -> Option<String> {
    args.under.as_ref().map(|path| format!("warning: --under: there was no agent at {path:?}"))
}

#[cfg(test)]
mod tests;
