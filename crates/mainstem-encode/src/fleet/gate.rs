//! Whether the prose of a model call is an answer, or a remark beside tool calls.

/// The longest remark, in bytes: a longer text is an answer, and live from there on.
const LONGEST: usize = 240;

/// The text of one model call, as far as it is held back.
#[derive(Debug, Default)]
pub(super) struct Gate {
    held: String,
    is_answer: bool,
    tools: Vec<String>,
}

/// What is shown when the model call is over.
#[derive(Debug, PartialEq)]
pub(super) struct Released {
    /// The rest of the answer, or a status line.
    pub(super) text: String,
    /// What the status line replaces.
    pub(super) remark: Option<String>,
}

impl Gate {
    /// A model call begins.
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    /// Adds text, and returns what is shown now.
    pub(super) fn text(&mut self, delta: &str) -> String {
        self.held.push_str(delta);
        self.is_answer |= self.tools.is_empty() && self.held.len() > LONGEST;
        if self.is_answer { std::mem::take(&mut self.held) } else { String::new() }
    }

    /// Notes a call of a tool.
    pub(super) fn call(&mut self, tool: &str) {
        self.tools.push(tool.to_owned());
    }

    /// The model call is over: returns what was held back.
    pub(super) fn end(&mut self) -> Released {
        let Self { held, is_answer, tools } = std::mem::take(self);
        if is_answer || tools.is_empty() {
            return Released { text: held, remark: None };
        }
        Released { text: format!("→ delegating: {}\n", tools.join("; ")), remark: Some(held) }
    }
}

#[cfg(test)]
mod tests {
    //! What is held, and what is shown.

    use super::*;

    #[test]
    fn a_remark_is_a_status_line_and_an_answer_is_live() {
        let mut gate = Gate::default();
        gate.begin();
        assert_eq!(gate.text("I ask two."), "");
        gate.call("agent_spawn");
        gate.call("agent_spawn");
        let remark = Some("I ask two.".to_owned());
        assert_eq!(gate.end(), Released { text: "→ delegating: agent_spawn; agent_spawn\n".into(), remark });

        gate.begin();
        assert_eq!(gate.text("Short."), "");
        assert_eq!(gate.end(), Released { text: "Short.".into(), remark: None });

        let long = "x".repeat(LONGEST + 1);
        gate.begin();
        assert_eq!(gate.text(&long), long);
        assert_eq!(gate.text("more"), "more");
        gate.call("search");
        assert_eq!(gate.end(), Released { text: String::new(), remark: None });
        assert_eq!(gate.end(), Released { text: String::new(), remark: None });
    }
}
