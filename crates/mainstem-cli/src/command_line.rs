//! The command line, with the server of the environment where `--server` could be.

use std::ffi::OsString;

use clap::{
    ArgMatches, CommandFactory, Error, FromArgMatches, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{args::Cli, config::var};

/// The variable that counts as `--server`.
pub(crate) const SERVER: &str = "MAINSTEM_SERVER";

/// The option, as clap identifies it.
const ID: &str = "server";

/// What an error about the option adds if the variable stands for it.
const TIP: &str =
    "MAINSTEM_SERVER is set, and counts as --server; `MAINSTEM_SERVER= mainstem …` uses this machine";

/// Parses a command line. For each command that has `--server`, the variable counts as that option,
/// with all that follows from it, unless the option is given. A variable that is empty is not set.
///
/// # Errors
/// The command line is invalid, or asks for help.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Cli, Error> {
    let matches = Cli::command().try_get_matches_from(&arguments)?;
    match var(SERVER).filter(|_| has_server(&matches) == Some(false)) {
        Some(server) => Cli::try_parse_from(with_server(arguments, &server)).map_err(of_variable),
        None => Cli::from_arg_matches(&matches),
    }
}

/// Returns whether the option is given; `None` if the command does not have it.
fn has_server(matches: &ArgMatches) -> Option<bool> {
    let below = matches.subcommand().and_then(|(_, matches)| has_server(matches));
    below.or_else(|| matches.try_contains_id(ID).ok())
}

/// Adds the option, before arguments that can't be options.
fn with_server(mut arguments: Vec<OsString>, server: &str) -> Vec<OsString> {
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    arguments.insert(end, format!("--server={server}").into());
    arguments
}

fn of_variable(mut error: Error) -> Error {
    if error.kind() == ErrorKind::ArgumentConflict {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![TIP.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_put_where_it_is_one() {
        let check = |line: &str, expected: &str| {
            let arguments = line.split(' ').map(OsString::from).collect();
            let arguments = with_server(arguments, "http://x");
            let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
            assert_eq!(arguments.join(" "), expected);
        };
        check("mainstem chat", "mainstem chat --server=http://x");
        check("mainstem run fix it", "mainstem run fix it --server=http://x");
        check("mainstem run -- --server is a word", "mainstem run --server=http://x -- --server is a word");
    }

    #[test]
    fn each_command_with_the_option_is_known_to_have_it() {
        let check = |line: &str, expected: Option<bool>| {
            let matches = Cli::command().try_get_matches_from(line.split(' ')).unwrap();
            assert_eq!(has_server(&matches), expected, "{line}");
        };
        for line in [
            "mainstem run Hi",
            "mainstem chat",
            "mainstem attach s",
            "mainstem watch",
            "mainstem replay s",
            "mainstem tasks list",
            "mainstem tasks cancel t",
            "mainstem sessions list",
            "mainstem sessions rm s",
        ] {
            check(line, Some(false));
            check(&format!("{line} --server http://x"), Some(true));
        }
        check("mainstem tasks --server http://x list", Some(true));
        for line in
            ["mainstem agents list", "mainstem doctor", "mainstem serve", "mainstem health", "mainstem init"]
        {
            check(line, None);
        }
    }
}
