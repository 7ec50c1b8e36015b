//! The hosts at which agents run whose address is not public: `remote_hosts`.

use mainstem::remote::Host;
use serde::{Deserialize, Deserializer, de::Error as _};

/// Reads names, addresses and networks.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Host>, D::Error> {
    let hosts = Vec::<String>::deserialize(deserializer)?;
    hosts.iter().map(|host| host.parse().map_err(D::Error::custom)).collect()
}

/// Returns what the hosts do.
#[expect(clippy::ptr_arg, reason = "a policy takes the field's type")]
pub(super) fn does(hosts: &Vec<Host>) -> String {
    let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
    format!("lets agents and their MCP servers be at {}", hosts.join(", "))
}
