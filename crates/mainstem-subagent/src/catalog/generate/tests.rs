//! Which part of an answer is the file. `tests/it/generate.rs` calls the tool.

use super::*;

#[test]
fn a_fence_around_the_file_is_taken_off() {
    let check = |answer: &str, expected: &str| assert_eq!(unfenced(answer), expected, "{answer:?}");
    let file = "---\ndescription: x\n---\nDo.\n";
    check(file, file);
    check("\n---\ndescription: x\n---\nDo.", file);
    check("```\n---\ndescription: x\n---\nDo.\n```", file);
    check("```markdown\n---\ndescription: x\n---\nDo.\n```\n", file);
    // A fence in the file is part of it.
    check("---\n---\nSay:\n```\nx\n```", "---\n---\nSay:\n```\nx\n```\n");
    check("", "\n");
    check("```", "```\n");
    check("``````", "``````\n");
}
