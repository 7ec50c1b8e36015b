//! What a server logs, on stderr: a line for each request and whatever is wrong, never what is said nor by which token.

use std::io;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::{args::Log, config::var, terminal::Terminal};

/// Says what is logged, in the syntax of `tracing_subscriber::EnvFilter`.
const FILTER: &str = "MAINSTEM_LOG";

const USUAL: &str = "warn,mainstem=info";

/// Begins to log, for as long as the process lives.
///
/// # Errors
/// `MAINSTEM_LOG` can't be read.
pub(crate) fn start(log: Log, terminal: Terminal) -> anyhow::Result<()> {
    let filter = var(FILTER).filter(|filter| !filter.is_empty());
    let filter = EnvFilter::try_new(filter.as_deref().unwrap_or(USUAL)).context(FILTER)?;
    let logger = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match log {
        Log::Off => {}
        Log::Text => logger.compact().with_ansi(terminal.color).init(),
        Log::Json => logger.json().flatten_event(true).init(),
    }
    Ok(())
}
