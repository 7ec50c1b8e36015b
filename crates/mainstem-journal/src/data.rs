//! Data that is stored beside the events of sessions.

use std::time::Duration;

use mainstem_message::DataId;
use sha2::{Digest, Sha256};

/// How long data is stored at least whose session does not begin: a day.
pub const DATA_WAITS: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the id of data: its SHA-256 in hexadecimal digits.
///
/// ```
/// let id = mainstem_journal::data_id(b"abc");
/// assert_eq!(id.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
/// ```
pub fn data_id(bytes: &[u8]) -> DataId {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    DataId::from_lossy(digits)
}
