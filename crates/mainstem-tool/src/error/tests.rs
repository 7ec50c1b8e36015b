//! The message of an error and its causes.

use super::*;

/// An error with this message and cause.
#[derive(Debug)]
struct Layer(&'static str, Option<Box<Self>>);

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Layer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_deref().map(|cause| cause as _)
    }
}

#[test]
fn causes_stand_behind_the_error_unless_it_says_them() {
    #[track_caller]
    fn check(layers: &[&'static str], expected: &str) {
        let chain = layers.iter().rev().fold(None, |cause, text| Some(Box::new(Layer(text, cause))));
        assert_eq!(ToolError::from(*chain.unwrap()).to_string(), expected);
    }
    check(&["the disk is full"], "the disk is full");
    check(
        &["can't save", "can't write a.txt", "the disk is full"],
        "can't save: can't write a.txt: the disk is full",
    );
    check(&["can't save: the disk is full", "the disk is full"], "can't save: the disk is full");
    check(
        &["can't save: the disk is full", "the disk is full", "sector 7"],
        "can't save: the disk is full: sector 7",
    );
}

#[test]
fn any_error_turns_into_one_with_a_question_mark() {
    fn number(text: &str) -> Result<u8, ToolError> {
        if text.is_empty() {
            return Err(ToolError::new("give a number"));
        }
        Ok(text.parse()?)
    }
    assert_eq!(number("").unwrap_err().to_string(), "give a number");
    assert_eq!(number("x").unwrap_err().to_string(), "invalid digit found in string");
    assert_eq!(number("7").unwrap(), 7);
}
