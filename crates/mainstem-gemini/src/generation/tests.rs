//! Names of models.

use super::*;

#[test]
fn a_name_says_the_generation() {
    let check = |model: &str, expected| assert_eq!(Generation::of(model), expected, "{model}");
    check("gemini-1.5-pro", Generation::Two);
    check("gemini-2.5-flash", Generation::Two);
    check("models/gemini-2.0-flash-001", Generation::Two);
    check("gemini-3-pro-preview", Generation::Three);
    check("publishers/google/models/gemini-3.8-flash", Generation::Three);
    check("gemini-flash-latest", Generation::Three);
    check("gemma-3-27b-it", Generation::Other);
    check("tunedModels/mine", Generation::Other);
    check("", Generation::Other);
}
