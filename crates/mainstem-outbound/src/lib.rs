//! Requests to other servers: the HTTP client that sends them, and the secrets that no message
//! about them may show.
//!
//! ```
//! use mainstem_outbound::Secrets;
//!
//! let mut secrets = Secrets::default();
//! secrets.add_header("Bearer sk-very-secret");
//! assert_eq!(secrets.redact("401: unknown key sk%2Dvery%2Dsecret"), "401: unknown key [secret]");
//! ```

mod client;
mod secrets;

pub use client::client;
pub use secrets::Secrets;
