//! Tokens of callers, and the tenants that they belong to.

use std::fmt;

use mainstem::{message::TenantName, policy::Tenant, spec::is_name};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// The shortest token, in bytes; a shorter one could be guessed.
const SHORTEST: usize = 16;

/// The valid tokens. Stores only their SHA-256, and compares in constant time.
///
/// ```
/// use mainstem_server::Tokens;
///
/// let (token, tokens) = Tokens::generated();
/// assert!(token.len() >= 16 && !tokens.is_empty());
/// // One for a tenant, whose sessions others do not see.
/// let tokens = tokens.with_token("a-long-secret-of-acme", Some("acme"))?;
/// # let _ = tokens;
/// # Ok::<(), mainstem_server::TokenError>(())
/// ```
#[derive(Clone, Default)]
pub struct Tokens(Vec<Token>);

#[derive(Clone)]
struct Token {
    digest: [u8; 32],
    tenant: Tenant,
}

/// Why a token is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is too short, so that it could be guessed.
    #[error("a token has at least {SHORTEST} characters, without blanks")]
    Short,
    /// The name of a tenant is invalid.
    #[error("invalid tenant name {0:?}: use a-z, 0-9, _ and -, starting with a letter or digit")]
    Tenant(String),
    /// The token was added before.
    #[error("the token is there twice")]
    Twice,
    /// A line of a file is invalid.
    #[error("line {line}: {error}")]
    #[non_exhaustive]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// Why it is invalid.
        error: Box<Self>,
    },
    /// A file has no tokens.
    #[error(
        "the file has no tokens; write one on each line, after the tenant's name and a space if it is a tenant's"
    )]
    None,
}

impl Tokens {
    /// Creates a set without tokens: requests need none.
    pub fn new() -> Self {
        Self::default()
    }

    /// Generates a token for the harness itself, and returns it with the set of it.
    pub fn generated() -> (String, Self) {
        let token = secret("mst");
        let tokens = Self(vec![Token { digest: digest(&token), tenant: None }]);
        (token, tokens)
    }

    /// Adds a token of a tenant, or of the harness itself.
    ///
    /// # Errors
    /// The token is too short or was added before, or the name of the tenant is invalid.
    pub fn with_token(mut self, token: &str, tenant: Option<&str>) -> Result<Self, TokenError> {
        if token.len() < SHORTEST || token.contains(char::is_whitespace) {
            return Err(TokenError::Short);
        }
        let tenant = tenant.map(named).transpose()?;
        let digest = digest(token);
        if self.0.iter().any(|known| known.digest == digest) {
            return Err(TokenError::Twice);
        }
        self.0.push(Token { digest, tenant });
        Ok(self)
    }

    /// Parses a file with a token on each line, after the tenant's name and a space if it is a
    /// tenant's. Empty lines and `#` comments are skipped.
    ///
    /// # Errors
    /// The number of the invalid line and the reason, without the token.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let mut tokens = Self::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (tenant, token) = match line.split_once(char::is_whitespace) {
                Some((tenant, token)) => (Some(tenant), token.trim()),
                None => (None, line),
            };
            tokens = tokens
                .with_token(token, tenant)
                .map_err(|error| TokenError::Line { line: number + 1, error: Box::new(error) })?;
        }
        if tokens.is_empty() { Err(TokenError::None) } else { Ok(tokens) }
    }

    /// Returns `true` if tokens are not required.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the tenants that have tokens.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|token| token.tenant.as_ref()).map(TenantName::as_str)
    }

    /// Returns how many callers share the limits: the tenants, and the harness itself.
    pub(crate) fn callers(&self) -> usize {
        let mut callers: Vec<_> = self.0.iter().map(|token| &token.tenant).collect();
        callers.sort_unstable();
        callers.dedup();
        callers.len()
    }

    /// Returns the tenant of a token; `None` for an invalid token. Compares it with every token:
    /// the time does not depend on the match.
    pub(crate) fn tenant_of(&self, presented: &str) -> Option<&Tenant> {
        let presented = digest(presented);
        let mut found = None;
        for token in &self.0 {
            if bool::from(token.digest.ct_eq(&presented)) {
                found = Some(&token.tenant);
            }
        }
        found
    }
}

/// Returns a new secret of 64 hexadecimal digits behind a mark, with 244 random bits.
pub(crate) fn secret(mark: &str) -> String {
    format!("{mark}{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

fn named(tenant: &str) -> Result<TenantName, TokenError> {
    let refused = || TokenError::Tenant(tenant.to_owned());
    if is_name(tenant) { tenant.parse().map_err(|_| refused()) } else { Err(refused()) }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    //! What a file of tokens says, and whose they are.

    use super::*;

    #[test]
    fn a_file_has_a_token_a_line() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Tokens::parse(text).unwrap_err().to_string(), expected, "{text}");
        };
        check(
            "# none\n\n",
            "the file has no tokens; write one on each line, after the tenant's name and a space if it is a tenant's",
        );
        check("short", "line 1: a token has at least 16 characters, without blanks");
        check(
            "\nacme 0123456789abcdef\nBig 0123456789abcdeg",
            "line 3: invalid tenant name \"Big\": use a-z, 0-9, _ and -, starting with a letter or digit",
        );
        check("acme 0123456789abcdef\n0123456789abcdef", "line 2: the token is there twice");
        let tokens = Tokens::parse("# mine\n0123456789abcdef\nacme   fedcba9876543210  \n").unwrap();
        assert_eq!(tokens.tenant_of("0123456789abcdef"), Some(&None));
        assert_eq!(tokens.tenant_of("fedcba9876543210"), Some(&"acme".parse().ok()));
        assert_eq!(tokens.tenant_of("fedcba987654321"), None);
        assert_eq!(format!("{tokens:?}"), "Tokens(2)");
    }

    #[test]
    fn a_generated_token_is_taken() {
        let (token, tokens) = Tokens::generated();
        assert!(token.len() > 40 && tokens.tenant_of(&token) == Some(&None), "{token}");
        assert_ne!(token, Tokens::generated().0);
    }
}
