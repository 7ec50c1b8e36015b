//! A small tree with one crate of two modules, and maps that fit it or don't.

use super::check as problems;
use crate::tidy::packages::Package;

const FILES: [&str; 7] = [
    "crates/mainstem-event/src/lib.rs",
    "crates/mainstem-event/src/kind.rs",
    "crates/mainstem-event/src/kind/tests.rs",
    "crates/mainstem-event/src/session_log.rs",
    "crates/mainstem-event/src/tests.rs",
    "tests/it/main.rs",
    "xtask/src/main.rs",
];

fn check(text: &str, expected: &[&str]) {
    let package =
        |name: &str, folder: &str| Package { name: name.into(), folder: folder.into(), ..Package::default() };
    let packages = [package("mainstem-event", "crates/mainstem-event"), package("mainstem-tests", "tests")];
    let files = FILES.map(String::from);
    let found: Vec<_> = problems(text, &packages, &files).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{text}");
}

const FITS: &str = "- **mainstem-event** — what happened: `kind`, `session_log`\n";

#[test]
fn a_map_that_names_everything_fits() {
    check(FITS, &[]);
    check("- **mainstem-event**: `kind`,\n  and `session_log`, where `emit()` and `EventKind` live\n", &[]);
    check(&format!("{FITS}- **mainstem-tests** — timelines, nothing in `src/`\n"), &[]);
    check(
        &format!(
            "{FITS}\nSee crates/mainstem-event/src/kind.rs, `tests/it/`, xtask/src and mainstem-tests.\n"
        ),
        &[],
    );
    check(&format!("{FITS}  (`lib` lists them)\n"), &[]);
    check(&format!("{FITS}\nElsewhere `anything` may stand in backticks.\n"), &[]);
}

#[test]
fn a_crate_needs_an_item() {
    let missing = "ARCHITECTURE.md:1: the code map has no item `- **mainstem-event** …`";
    check("", &[missing]);
    check("The crate mainstem-event has `kind` and `session_log`.\n", &[missing]);
}

#[test]
fn an_item_names_the_modules_there_are() {
    let unnamed = "mainstem-event has a module `session_log`; name it";
    check("- **mainstem-event**: `kind`\n", &[&format!("ARCHITECTURE.md:1: {unnamed}")]);
    check(
        "# Map\n- **mainstem-event**: `kind`\n\n`session_log`\n",
        &[&format!("ARCHITECTURE.md:2: {unnamed}")],
    );
    check(
        "- **mainstem-event**: `kind`, `session_log`,\n  `queue`\n",
        &["ARCHITECTURE.md:2: mainstem-event has no module `queue` (crates/mainstem-event/src/queue.rs)"],
    );
}

#[test]
fn names_in_the_text_exist() {
    let rows = [
        ("mainstem-core", "there is no crate mainstem-core"),
        ("├── mainstem-core/", "there is no crate mainstem-core"),
        ("`mainstem-core/src/lib.rs`", "there is no crate mainstem-core"),
        ("crates/mainstem-event/src/queue.rs", "crates/mainstem-event/src/queue.rs doesn't exist"),
        ("(crates/mainstem-core)", "crates/mainstem-core doesn't exist"),
        ("tests/it/spawn.rs.", "tests/it/spawn.rs doesn't exist"),
    ];
    for (text, message) in rows {
        check(&format!("{FITS}\n{text}\n"), &[&format!("ARCHITECTURE.md:3: {message}")]);
    }
}
