//! The names of a server's tools.

use sha2::{Digest, Sha256};

/// The longest name that all vendors accept.
const MAX: usize = 64;

/// The longest name of a server, so that its tools' names have room.
const MAX_SERVER: usize = 32;

/// Returns `true` if a server can have this name: letters, digits, `-` and single `_`.
pub(crate) fn is_server(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let fits = (1..=MAX_SERVER).contains(&name.len()) && name.chars().all(plain);
    fits && !name.contains("__") && !name.starts_with('_') && !name.ends_with('_')
}

/// Returns the prefix of the names of a server's tools.
pub(crate) fn prefix(server: &str) -> String {
    format!("mcp__{server}__")
}

/// Returns a tool's name for models. Characters that a vendor refuses become `_`; a name that is
/// changed or too long ends in a hash of the original, so that different tools have different
/// names.
pub(crate) fn tool(server: &str, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    let name = format!("{}{}", prefix(server), tool.chars().map(plain).collect::<String>());
    if name.len() <= MAX && name.ends_with(tool) && !tool.is_empty() {
        return name;
    }
    let hash =
        Sha256::digest(tool).iter().take(3).fold(String::new(), |hash, byte| format!("{hash}{byte:02x}"));
    format!("{}_{hash}", &name[..name.len().min(MAX - 7)])
}

#[cfg(test)]
mod tests {
    //! Names that vendors take, each a name of its own.

    use super::*;

    #[test]
    fn tools_have_names_that_vendors_take() {
        let check = |name: &str, expected: &str| assert_eq!(tool("github", name), expected);
        check("get-issue", "mcp__github__get-issue");
        check("get_issue", "mcp__github__get_issue");
        check("get.issue", "mcp__github__get_issue_e799ff");
        check("get/issue", "mcp__github__get_issue_ee6c18");
        check("ünïcode", "mcp__github___n_code_b8be89");
        check("", "mcp__github___e3b0c4");
        let long = tool("github", &"a".repeat(200));
        assert_eq!(long.len(), MAX);
        assert_ne!(long, tool("github", &"a".repeat(201)));
    }

    #[test]
    fn servers_have_names_that_fit_into_a_tools() {
        for name in ["github", "my-server", "a_b", "A1"] {
            assert!(is_server(name), "{name}");
        }
        for name in ["", "a__b", "_a", "a_", "a b", "a.b", "ü", &"a".repeat(33)] {
            assert!(!is_server(name), "{name}");
        }
    }
}
