//! Addresses, compared by server and then by what follows, so that no wildcard for one reaches into the other.

use crate::glob;

/// Whether the address is certain to be one that the rule names.
pub(crate) fn covers(glob: &str, url: &str) -> bool {
    let (server, rest) = split(url);
    let is_odd = |c: char| c == '\\' || c.is_whitespace() || c.is_control();
    let climbs = rest.split(['/', '?', '#']).any(|segment| matches!(segment, ".." | "%2e%2e" | "%2E%2E"));
    !(url.contains(is_odd) || server.contains(['@', '%']) || climbs) && fits(glob, &server, rest)
}

/// Whether the address may be one that the rule names.
pub(crate) fn touches(glob: &str, url: &str) -> bool {
    let url: String = url.trim().chars().filter(|c| !c.is_control()).collect::<String>().replace('\\', "/");
    let (server, rest) = split(&url);
    let (scheme, host) = server.split_once("://").unwrap_or(("", &server));
    let bare = host.rsplit('@').next().unwrap_or(host).trim_end_matches('.');
    fits(glob, &server, rest) || fits(glob, &format!("{scheme}://{bare}"), rest) || glob::matches(glob, &url)
}

fn fits(glob: &str, server: &str, rest: &str) -> bool {
    let (wanted, path) = split(glob);
    let path = if path == "/" && !glob.ends_with('/') && wanted.ends_with('*') { "*" } else { path };
    glob::matches(&wanted, server) && glob::matches(path, rest)
}

/// The scheme and server in lower case, and the rest from its first `/`, `?` or `#`.
fn split(url: &str) -> (String, &str) {
    let server = url.find("://").map_or(0, |at| at + 3);
    // In a glob `?` is a wildcard; one in the server's name is too rare to be worth a second rule.
    let end = url[server..].find(['/', '?', '#']).map_or(url.len(), |at| server + at);
    let rest = &url[end..];
    (url[..end].to_lowercase(), if rest.is_empty() { "/" } else { rest })
}

#[cfg(test)]
mod tests;
