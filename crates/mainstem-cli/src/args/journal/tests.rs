//! Files and databases, and that no password is shown.

use super::*;

#[test]
fn a_database_is_shown_without_its_password() {
    for (given, shown) in [
        ("sessions.db", "sessions.db"),
        ("./postgres/x", "./postgres/x"),
        ("postgres://db/agents", "postgres://db/agents"),
        ("postgres://fleet@db/agents", "postgres://fleet@db/agents"),
        (
            "postgres://fleet:secret@db:6000/agents?sslmode=require",
            "postgres://fleet@db:6000/agents?sslmode=require",
        ),
        ("postgresql://fleet:sec@ret@db/x", "postgresql://fleet@db/x"),
        ("postgres://fleet@db/x?password=secret", "postgres://fleet@db/x"),
        (
            "postgres://db/x?user=fleet&password=sec@ret&sslmode=require",
            "postgres://db/x?user=fleet&sslmode=require",
        ),
    ] {
        let journal = JournalAt::from(OsString::from(given));
        assert_eq!(journal.to_string(), shown);
        assert_eq!(matches!(journal, JournalAt::Database(_)), shown.contains("://"), "{given}");
    }
}
