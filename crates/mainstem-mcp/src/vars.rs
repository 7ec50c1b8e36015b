//! `${NAME}` in the texts of a declaration: values from the environment, which are secrets.

use mainstem_outbound::Secrets;

use crate::Error;

/// Expands variables in texts, and holds the values that must not be shown.
#[derive(Clone, Default)]
pub(crate) struct Vars {
    pub(crate) secrets: Secrets,
}

impl Vars {
    /// Replaces `${NAME}`, and `${NAME:-default}` if the variable is unset. Anything else that
    /// begins with `$` stays.
    pub(crate) fn expand(
        &mut self,
        text: &str,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<String, Error> {
        let (mut expanded, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            expanded.push_str(before);
            let (name, default) = name.split_once(":-").map_or((name, None), |(name, or)| (name, Some(or)));
            match var(name) {
                Some(value) => {
                    expanded.push_str(&value);
                    self.secrets.add(&value);
                }
                None => expanded.push_str(default.ok_or_else(|| Error::Variable { name: name.to_owned() })?),
            }
            rest = behind;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }
}

#[cfg(test)]
mod tests {
    //! What is expanded, and what is hidden.

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let var = |name: &str| (name == "TOKEN").then(|| "s3cret-value".to_owned());
        let expanded = Vars::default().expand(text, var).map_err(|error| error.to_string());
        assert_eq!(expanded.as_deref().map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn variables_are_replaced() {
        check("plain $HOME", Ok("plain $HOME"));
        check("Bearer ${TOKEN}", Ok("Bearer s3cret-value"));
        check("${TOKEN}${TOKEN}!", Ok("s3cret-values3cret-value!"));
        check("${NONE:-fallback}", Ok("fallback"));
        check("${TOKEN:-fallback}", Ok("s3cret-value"));
        check("${open", Ok("${open"));
        check("${NONE}", Err("the environment has no variable NONE; set it, or write ${NONE:-default}"));
    }

    #[test]
    fn values_are_secrets() {
        let mut vars = Vars::default();
        vars.expand("${A} ${B}", |name| Some(if name == "A" { "long-enough" } else { "short" }.to_owned()))
            .unwrap();
        assert_eq!(vars.secrets.redact("a long-enough, short text"), "a [secret], short text");
    }
}
