//! Commands that hide others, and plain ones.

use proptest::prelude::*;

use super::{covers, touches};

#[test]
fn plain_commands_are_allowed_if_every_part_fits() {
    for plain in [
        "git status",
        "git",
        "  git status  ",
        "git commit -m 'a; b | c && d > e # f'",
        "git commit -m \"a; b\nc\"",
        "git log $HOME",
        "git log \"$HOME\"",
        "git stash push 'a$(b)'",
        "git show HEAD@{0}",
        "git status; git diff",
        "git status && git diff || git log | git grep x &",
        "git status\ngit diff\n",
        "git add *.rs",
    ] {
        assert!(covers("git *", plain), "{plain}");
    }
}

#[test]
fn nothing_rides_along_with_an_allowed_command() {
    for hostile in [
        "",
        ";",
        "gitk --all",
        "git status; rm -rf /",
        "git status;rm -rf /",
        "git status && rm -rf /",
        "git status || rm -rf /",
        "git status & rm -rf /",
        "git status | sh",
        "git status |& sh",
        "git status\nrm -rf /",
        "git status\r\nrm -rf /",
        "git status\rrm -rf /",
        "git status `rm -rf /`",
        "git status $(rm -rf /)",
        "git status \"$(rm -rf /)\"",
        "git status \"`rm -rf /`\"",
        "git status ${x:=$(rm -rf /)}",
        "git status \"${x:-`rm`}\"",
        "git status $((1+1))",
        "git status $[1+1]",
        "git diff > /etc/passwd",
        "git diff >> ~/.bashrc",
        "git diff < /etc/shadow",
        "git diff <(rm -rf /)",
        "git diff <<EOF\nEOF",
        "git diff 2>&1",
        "(git status)",
        "git status (rm)",
        "{ git status; rm; }",
        "git status # it's\nrm -rf /",
        "git status # it's\nrm -rf / # it's",
        "git \\\" ; rm -rf / \\\"",
        "git \\' ; rm -rf / \\'",
        "git $'\\'' ; rm -rf / #'",
        "git $'a' ; rm",
        "git $\"a\" b",
        "git 'a\\'; rm -rf / #'",
        "git \"a\\\"; rm -rf / #\"",
        "git status \\\nrm",
        "git status \\; rm",
        "git 'open",
        "git \"open",
        "git status\0; rm",
        "! git status",
        "sudo git status",
        "PATH=/tmp git status",
        "/tmp/git status",
        "g'i't status",
        "git\tstatus",
        "git status; \u{a0}git x",
        "git status;\u{a0}",
        "git status; \u{2003}git x",
        "if git status; then rm; fi",
    ] {
        assert!(!covers("git *", hostile), "{hostile}");
    }
}

#[test]
fn globs_are_for_simple_commands() {
    let check = |glob: &str, command: &str, expected| {
        assert_eq!(covers(glob, command), expected, "{glob} | {command}")
    };
    check("git diff*", "git diff HEAD", true);
    check("git diff*", "git diff HEAD | cat", false);
    check("git status", "git status", true);
    check("git status", "git status -s", false);
    check("*", "ls; rm -rf /", true);
    check("*", "ls > x", false);
}

#[test]
fn refused_if_any_part_may_fit() {
    let check = |glob: &str, command: &str, expected| {
        assert_eq!(touches(glob, command), expected, "{glob} | {command}")
    };
    for hidden in [
        "rm -rf /",
        "rm",
        "  rm   -rf  /",
        "rm\t-rf /",
        "ls; rm -rf /",
        "ls;rm -rf /",
        "ls && rm x",
        "ls || rm x",
        "ls & rm x",
        "ls | rm x",
        "ls\nrm x",
        "ls\rrm x",
        "echo $(rm x)",
        "echo \"$(rm x)\"",
        "echo `rm x`",
        "echo ${x:-$(rm x)}",
        "cat <(rm x)",
        "(rm x)",
        "{ rm x; }",
        "ls > x; rm x",
        "ls # it's\nrm x",
        "'rm' x",
        "r''m x",
        "r\"\"m x",
        "\\rm x",
        "r\\\nm x",
        "rm${IFS}-rf",
        "$'rm' x",
        "/bin/rm x",
        "../bin/rm x",
        "sudo rm x",
        "sudo -u bob rm x",
        "/usr/bin/sudo /bin/rm x",
        "env -i A=b rm x",
        "A=b rm x",
        "A=b C=d sudo rm x",
        "timeout 5 rm x",
        "xargs -n1 rm",
        "ls | xargs rm",
        "find . -exec rm {} +",
        "bash -c 'rm x'",
        "sh -c \"ls; rm x\"",
        "if true; then rm x; fi",
        "while rm x; do :; done",
        "! rm x",
        "exec rm x",
        "eval rm x",
    ] {
        check("rm *", hidden, true);
    }
    for harmless in
        ["", "ls", "rmdir x", "git rm x", "echo rm", "cargo run -- rm", "ls rm", "format x", "a=b"]
    {
        check("rm *", harmless, false);
    }
    check("* > /etc/*", "echo x > /etc/passwd", true);
    check("curl * | sh", "curl -s https://x  |  sh", true);
    check("git push*", "git status && git push --force", true);
    check("rm -rf *", "rm -r x", false);
    check("git stash@{0}", "git stash@{0}", true);
}

#[test]
fn a_long_command_takes_no_time_and_hides_nothing() {
    assert!(!touches("rm *", &"word ".repeat(50_000)));
    assert!(!touches("rm *", &format!("sudo {}", "word ".repeat(100))));
    assert!(touches("rm *", &format!("sudo {} rm x", "word ".repeat(100))));
    assert!(touches("rm *", &format!("env {} rm x", "A=1 ".repeat(20_000))));
    assert!(covers("git *", &"git a;".repeat(50_000)));
}

proptest! {
    #[test]
    fn what_is_plain_is_also_noticed(glob in "[a-c *]{1,6}", command in "[a-c ;&|'\"$(){}<>\\\\\n]{0,20}") {
        prop_assert!(!covers(&glob, &command) || touches(&glob, &command), "{:?} {:?}", glob, command);
    }

    #[test]
    fn what_follows_a_separator_is_never_allowed(
        before in "[a-z '\"$(){}<>#\\\\`]{0,16}",
        separator in prop::sample::select(vec![";", "&&", "||", "|", "&", "\n", "`", "$(", "<(", ">"]),
    ) {
        // Balanced quotes may hide the separator, rightly; here no quote is open at it.
        let quotes = before.contains(['\'', '"']);
        let command = format!("git {before}{separator}rm -rf /");
        prop_assert!(quotes || !covers("git *", &command), "{:?}", command);
    }

    #[test]
    fn any_text_is_read(glob in ".{0,8}", command in ".{0,40}") {
        covers(&glob, &command);
        touches(&glob, &command);
    }
}
