//! The runtime that suits a server.

/// After how many polls of tasks a worker looks for input, output and timers. Tokio's default is
/// 61: while one tenant keeps the workers busy, another's request waits for that many polls at each
/// step.
const EVENT_INTERVAL: u32 = 5;

/// Returns a builder of a tokio runtime for a server: with a worker for each processor, input,
/// output and time enabled, and fair to connections under load. A server runs on any tokio runtime
/// with input, output and time; on others a busy tenant delays the others by more.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let runtime = mainstem_server::runtime().build()?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn runtime() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.event_interval(EVENT_INTERVAL).enable_all();
    builder
}
