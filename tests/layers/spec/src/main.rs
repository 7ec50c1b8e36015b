//! A program over `mainstem-spec` alone: agents that are files, checked as an editor would.

use std::path::Path;

use mainstem_spec::{AgentSpec, parse};

const FILE: &str = "---\ndescription: Reviews a change\ntools: [read_file, grep_files]\n---\nBe brief.\n";

fn main() {
    let parsed = parse("reviewer", FILE, Path::new("reviewer.md")).expect("a valid file");
    let built = AgentSpec::new("reviewer", "Reviews a change").with_tools(["read_file", "grep_files"]);
    assert_eq!(parsed.spec.description, built.description);
    assert_eq!(parsed.spec.tools, built.tools);

    // An error names its line and column.
    let broken = FILE.replace("tools:", "steps: many\ntools:");
    let errors = parse("reviewer", &broken, Path::new("reviewer.md")).expect_err("`many` is no number");
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("reviewer.md:3"), "{}", errors[0]);
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_runs() {
        super::main();
    }
}
