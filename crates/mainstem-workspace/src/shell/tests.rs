//! The environment of a command.

use super::*;

#[test]
fn only_what_is_listed_is_passed() {
    let known = |options: &ShellOptions| {
        let environment = options.environment(Path::new("/ws"));
        let mut names: Vec<_> =
            environment.iter().map(|(name, _)| name.to_str().unwrap().to_owned()).collect();
        names.sort();
        names.dedup();
        (names, environment)
    };
    let (names, environment) = known(&ShellOptions::default());
    assert!(
        names.iter().all(|name| [&PASSED[..], &["HOME", "TERM"]].concat().contains(&&**name)),
        "{names:?}"
    );
    assert!(environment.contains(&("HOME".into(), "/ws".into())));
    assert!(environment.contains(&("TERM".into(), "dumb".into())));
    let mut all = std::env::vars_os().map(|(name, _)| name.to_str().unwrap().to_owned());
    let name = all.find(|name| !names.contains(name)).expect("the test has more than it would pass");
    let (names, _) = known(&ShellOptions::default().with_variable(&name).with_variable("NOT_SET_ANYWHERE"));
    assert!(names.contains(&name) && !names.contains(&"NOT_SET_ANYWHERE".to_owned()));
}
