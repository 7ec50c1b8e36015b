//! Which addresses requests may reach.

use std::{
    error::Error,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use reqwest::{
    ClientBuilder, Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

/// The hosts that requests may reach: those with a public address, and those that the operator
/// allows. A URL that comes from a file, a model or another server is requested within a reach, so
/// that it can't name a service of the private network or of this machine.
///
/// A client [within](Self::limit) a reach connects to the address that was checked: a name is
/// resolved once for each connection.
///
/// ```
/// use mainstem_outbound::Reach;
///
/// let url = |text: &str| text.parse().unwrap();
/// let reach = Reach::public();
/// assert!(reach.check(&url("https://agents.example/x")).is_ok());
/// assert!(reach.check(&url("http://169.254.169.254/latest")).is_err());
/// let reach = reach.with_host("10.0.0.0/8".parse()?);
/// assert!(reach.check(&url("http://10.1.2.3:7878")).is_ok());
/// # Ok::<(), mainstem_outbound::HostError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    hosts: Vec<Host>,
}

/// Hosts beside those with a public address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Every,
    Name(String),
    /// A network and the length of its prefix.
    Network(IpAddr, u8),
}

/// A text is not a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a host: write a name, an IP address, a network such as 10.0.0.0/8, or *")]
#[non_exhaustive]
pub struct HostError {
    /// The text.
    pub text: String,
}

/// A host is out of reach.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutOfReach {
    /// The host of the URL.
    pub host: String,
    /// The address that it has.
    pub address: IpAddr,
}

impl OutOfReach {
    /// Returns `true` if an error has this cause, so that another attempt is in vain.
    pub fn is_cause_of(error: &(dyn Error + 'static)) -> bool {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if error.is::<Self>() {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

impl Error for OutOfReach {}

impl fmt::Display for OutOfReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address } = self;
        if host.trim_matches(['[', ']']) == address.to_string() {
            return write!(f, "{address} is not a public address; `remote_hosts` allows this host");
        }
        write!(f, "{host} has the address {address}, which is not public; `remote_hosts` allows this host")
    }
}

impl Reach {
    /// Creates the reach of hosts with a public address.
    pub fn public() -> Self {
        Self::default()
    }

    /// Adds hosts.
    #[must_use]
    pub fn with_host(mut self, host: Host) -> Self {
        self.hosts.push(host);
        self
    }

    /// Checks the host of a URL, as far as that is possible without resolving its name.
    ///
    /// # Errors
    /// The host is an IP address out of reach.
    pub fn check(&self, url: &Url) -> Result<(), OutOfReach> {
        let host = url.host_str().unwrap_or_default();
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) => self.check_address(host, address),
            Err(_) => Ok(()),
        }
    }

    /// Limits a client to this reach, unless that is every host: a proxy of the environment is not
    /// used then, because it would resolve names itself.
    pub fn limit(&self, client: ClientBuilder) -> ClientBuilder {
        if self.hosts.contains(&Host(Kind::Every)) {
            return client;
        }
        client.no_proxy().dns_resolver(std::sync::Arc::new(Checked(self.clone())))
    }

    fn check_address(&self, host: &str, address: IpAddr) -> Result<(), OutOfReach> {
        let is_allowed = is_public(address) || self.hosts.iter().any(|allowed| allowed.has(host, address));
        if is_allowed { Ok(()) } else { Err(OutOfReach { host: host.to_owned(), address }) }
    }
}

impl Host {
    fn has(&self, host: &str, address: IpAddr) -> bool {
        match &self.0 {
            Kind::Every => true,
            Kind::Name(name) => name.eq_ignore_ascii_case(host),
            Kind::Network(network, prefix) => {
                let bits = |address: IpAddr| match address {
                    IpAddr::V4(address) => (u128::from(u32::from(address)), 32_u32),
                    IpAddr::V6(address) => (u128::from(address), 128),
                };
                let ((network, width), (address, other)) = (bits(*network), bits(address.to_canonical()));
                let host_bits = width.saturating_sub(u32::from(*prefix));
                width == other && (network ^ address).checked_shr(host_bits).unwrap_or(0) == 0
            }
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Every => f.write_str("*"),
            Kind::Name(name) => f.write_str(name),
            Kind::Network(address, prefix) => write!(f, "{address}/{prefix}"),
        }
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let error = || HostError { text: text.to_owned() };
        if text == "*" {
            return Ok(Self(Kind::Every));
        }
        let (address, prefix) = text.split_once('/').map_or((text, None), |(it, prefix)| (it, Some(prefix)));
        if let Ok(address) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
            let width: u8 = if address.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.map_or(Ok(width), str::parse).map_err(|_| error())?;
            let canonical = address.to_canonical();
            // An IPv4 address within IPv6 has 96 bits before it.
            let before = if canonical.is_ipv4() { width - 32 } else { 0 };
            let is_network = (before..=width).contains(&prefix);
            return if is_network {
                Ok(Self(Kind::Network(canonical, prefix - before)))
            } else {
                Err(error())
            };
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if text.is_empty() || prefix.is_some() || !text.chars().all(is_name) {
            return Err(error());
        }
        Ok(Self(Kind::Name(text.to_owned())))
    }
}

/// Resolves names to addresses within a reach.
struct Checked(Reach);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0.clone();
        Box::pin(async move {
            let host = name.as_str();
            let mut within = Vec::<SocketAddr>::new();
            let mut refused = None;
            for address in tokio::net::lookup_host((host, 0)).await? {
                match reach.check_address(host, address.ip()) {
                    Ok(()) => within.push(address),
                    Err(error) => refused = Some(error),
                }
            }
            match refused {
                Some(refused) if within.is_empty() => Err(refused.into()),
                _ => Ok(Box::new(within.into_iter()) as Addrs),
            }
        })
    }
}

/// Returns `true` if an address is reached over the public internet: it is in none of the
/// [special-purpose registries](https://www.iana.org/assignments/iana-ipv4-special-registry), nor
/// does it stand for one that is.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99);
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let [.., y, z] = address.segments();
    let embedded = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    // NAT64 and 6to4 lead to an IPv4 address.
    if (a, b) == (0x64, 0xff9b) {
        let is_well_known = address.segments()[2..6] == [0; 4];
        return is_well_known && is_public_v4(embedded(y, z));
    }
    if a == 0x2002 {
        return is_public_v4(embedded(b, address.segments()[2]));
    }
    // Global unicast, without documentation, Teredo and other protocol assignments.
    (a & 0xe000) == 0x2000 && !(a == 0x2001 && (b == 0xdb8 || b < 0x200)) && a != 0x3fff
}

#[cfg(test)]
mod tests;
