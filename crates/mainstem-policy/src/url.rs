//! Addresses, compared by server and then by the rest, so that a wildcard stays within one of the
//! two.

use crate::{glob, path};

/// Returns `true` if the address is certainly one that the rule names.
pub(crate) fn covers(glob: &str, url: &str) -> bool {
    let (server, rest) = split(url);
    let is_odd = |c: char| c == '\\' || c.is_whitespace() || c.is_control();
    let climbs = decoded(rest).split(['/', '?', '#']).any(|segment| segment == "..");
    !(url.contains(is_odd) || server.contains(['@', '%']) || climbs) && fits(glob, &server, rest)
}

/// Returns `true` if the address may be one that the rule names: with a user, a port or a final
/// dot, without a scheme, in any case.
pub(crate) fn touches(glob: &str, url: &str) -> bool {
    let plain: String = url.trim().chars().filter(|c| !c.is_control()).collect::<String>().replace('\\', "/");
    let url = match (plain.contains("://"), glob.split_once("://")) {
        (false, Some((scheme, _))) => format!("{scheme}://{}", plain.trim_start_matches('/')),
        _ => plain,
    };
    let (server, rest) = split(&url);
    let (scheme, host) = server.split_once("://").unwrap_or(("", &server));
    let host = host.rsplit('@').next().unwrap_or(host);
    let is_port = |port: &str| port.chars().all(|c| c.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
    let servers = [host, host.trim_end_matches('.'), name, name.trim_end_matches('.')];
    let straight = straight(rest);
    let fits = |server: &str| fits(glob, server, rest) || fits(glob, server, &straight);
    glob::matches(glob, &url)
        || fits(&server)
        || servers.into_iter().any(|host| fits(&format!("{scheme}://{host}")))
}

/// Returns the path as a server resolves it, without query and fragment.
fn straight(rest: &str) -> String {
    let path = decoded(rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut segments = path::resolved(path);
    segments.retain(|segment| *segment != "..");
    format!("/{}", segments.join("/"))
}

/// Decodes the characters that separate segments of a path.
fn decoded(rest: &str) -> String {
    let mut decoded = rest.to_owned();
    for (code, plain) in [("%2e", "."), ("%2E", "."), ("%2f", "/"), ("%2F", "/"), ("%5c", "/"), ("%5C", "/")]
    {
        decoded = decoded.replace(code, plain);
    }
    decoded
}

fn fits(glob: &str, server: &str, rest: &str) -> bool {
    let (wanted, path) = split(glob);
    let path = if path == "/" && !glob.ends_with('/') && wanted.ends_with('*') { "*" } else { path };
    glob::matches(&wanted, server) && glob::matches(path, rest)
}

/// Returns the scheme and server in lower case, and the rest from its first `/`, `?` or `#`.
fn split(url: &str) -> (String, &str) {
    let server = url.find("://").map_or(0, |at| at + 3);
    // In a glob `?` is a wildcard; one in the server's name is too rare for a second rule.
    let end = url[server..].find(['/', '?', '#']).map_or(url.len(), |at| server + at);
    let rest = &url[end..];
    (url[..end].to_lowercase(), if rest.is_empty() { "/" } else { rest })
}

#[cfg(test)]
mod tests;
