//! Interrupts: what a graph asks a person, and the answer that resumes it. Pure.
//!
//! LangChain's middleware for approvals asks with `action_requests` and reads `decisions`. Graphs
//! for Agent Inbox ask with a list of `action_request`s and read a list of responses. Any other
//! value is a question, whose answer is `true`, `false`, or the value that a person gives instead.

use std::collections::BTreeMap;

use mainstem_event::Decision;
use mainstem_message::{ConfirmId, ToolCall};
use serde_json::{Map, Value, json};

use super::wire::Interrupt;

/// The name of the call that stands for a question.
const INTERRUPT: &str = "interrupt";

/// The questions of a run that has stopped, and their answers so far.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// How many times the turn has asked before: an interrupt of a task has the id of its last one.
    round: u32,
    asked: Vec<Asked>,
    answers: BTreeMap<ConfirmId, Decision>,
}

#[derive(Debug)]
struct Asked {
    interrupt: Interrupt,
    form: Form,
    /// What a person decides about, in order.
    ids: Vec<ConfirmId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Middleware,
    Inbox,
    Value,
}

/// A request for approval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) id: ConfirmId,
    /// What the graph wants to do: the name and the arguments of a call.
    pub(super) action: ToolCall,
    /// Whether the action is a call of a tool.
    pub(super) is_call: bool,
}

impl Questions {
    /// Returns the questions of a turn that has asked this many times before.
    pub(super) fn after(rounds: usize) -> Self {
        Self { round: u32::try_from(rounds).unwrap_or(u32::MAX), ..Self::default() }
    }

    /// Returns the questions after these.
    pub(super) fn next(&self) -> Self {
        Self { round: self.round.saturating_add(1), ..Self::default() }
    }

    /// Adds an interrupt, and returns what a person is asked.
    pub(super) fn add(&mut self, interrupt: Interrupt) -> Vec<Question> {
        let (form, actions) = actions(&interrupt.value);
        let confirm =
            |place: usize| ConfirmId::from_lossy(format!("{}-{}-{}", interrupt.id, self.round, place + 1));
        let ids: Vec<_> = (0..actions.len()).map(confirm).collect();
        let question = |(id, (name, arguments)): (&ConfirmId, (String, Value))| Question {
            id: id.clone(),
            action: ToolCall::new(id.as_str(), name, arguments.to_string()),
            is_call: form != Form::Value,
        };
        let questions = ids.iter().zip(actions).map(question).collect();
        self.asked.push(Asked { interrupt, form, ids });
        questions
    }

    /// Takes in an answer; nothing if the question is unknown or answered.
    pub(super) fn answer(&mut self, id: &ConfirmId, decision: Decision) {
        if self.asked.iter().any(|asked| asked.ids.contains(id)) {
            self.answers.entry(id.clone()).or_insert(decision);
        }
    }

    /// Returns `true` if each question has its answer.
    pub(super) fn are_answered(&self) -> bool {
        self.asked.iter().flat_map(|asked| &asked.ids).all(|id| self.answers.contains_key(id))
    }

    /// Returns the ids of the interrupts.
    pub(super) fn interrupts(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(|asked| asked.interrupt.id.as_str())
    }

    /// Returns the ids of those without an answer.
    pub(super) fn open(&self) -> Vec<ConfirmId> {
        let ids = self.asked.iter().flat_map(|asked| &asked.ids);
        ids.filter(|id| !self.answers.contains_key(*id)).cloned().collect()
    }

    /// Returns the decisions, to be told in the results of the calls that stand for questions.
    pub(super) fn decisions(&self) -> impl Iterator<Item = (&ConfirmId, &Decision)> {
        self.answers.iter()
    }

    /// Returns the value that resumes the graph: that of the one interrupt, or a map of them.
    pub(super) fn resume(&self) -> Value {
        match &*self.asked {
            [one] => self.value(one),
            all => {
                let values = all.iter().map(|asked| (asked.interrupt.id.clone(), self.value(asked)));
                Value::Object(values.collect::<Map<_, _>>())
            }
        }
    }

    fn value(&self, asked: &Asked) -> Value {
        let decisions = asked.ids.iter().filter_map(|id| self.answers.get(id));
        match asked.form {
            Form::Middleware => {
                let names = list(&asked.interrupt.value, "action_requests").map(|action| name(&action));
                json!({ "decisions": decisions.zip(names).map(|(one, name)| reviewed(one, &name)).collect::<Vec<_>>() })
            }
            Form::Inbox => decisions.map(response).collect(),
            Form::Value => decisions.map(plain).next().unwrap_or(Value::Bool(false)),
        }
    }
}

/// Returns the form of a value, and the actions that it is about: names and arguments.
fn actions(value: &Value) -> (Form, Vec<(String, Value)>) {
    let requests: Vec<_> = list(value, "action_requests").collect();
    if !requests.is_empty() {
        return (Form::Middleware, requests.iter().map(|one| (name(one), arguments(one))).collect());
    }
    let inbox = |one: &Value| one.get("action_request").cloned();
    let requests: Option<Vec<_>> =
        value.as_array().map(|all| all.iter().map(inbox).collect()).unwrap_or_default();
    match requests {
        Some(requests) if !requests.is_empty() => {
            (Form::Inbox, requests.iter().map(|one| (name(one), arguments(one))).collect())
        }
        _ => {
            let arguments = if value.is_object() { value.clone() } else { json!({ "value": value }) };
            (Form::Value, vec![(INTERRUPT.to_owned(), arguments)])
        }
    }
}

fn list(value: &Value, name: &str) -> impl Iterator<Item = Value> {
    value.get(name).and_then(Value::as_array).cloned().unwrap_or_default().into_iter()
}

fn name(action: &Value) -> String {
    let name = action.get("name").or_else(|| action.get("action")).and_then(Value::as_str);
    name.unwrap_or(INTERRUPT).to_owned()
}

fn arguments(action: &Value) -> Value {
    let arguments = action.get("args").or_else(|| action.get("arguments"));
    arguments.cloned().unwrap_or_else(|| json!({}))
}

fn reviewed(decision: &Decision, name: &str) -> Value {
    match decision {
        Decision::Allow => json!({ "type": "approve" }),
        Decision::AllowWith(args) => {
            json!({ "type": "edit", "edited_action": { "name": name, "args": args } })
        }
        Decision::Deny(reason) => json!({ "type": "reject", "message": reason }),
    }
}

fn response(decision: &Decision) -> Value {
    match decision {
        Decision::Allow => json!({ "type": "accept", "args": null }),
        Decision::AllowWith(args) => json!({ "type": "edit", "args": { "args": args } }),
        Decision::Deny(reason) => json!({ "type": "response", "args": reason }),
    }
}

fn plain(decision: &Decision) -> Value {
    match decision {
        Decision::Allow => Value::Bool(true),
        Decision::AllowWith(value) => value.clone(),
        Decision::Deny(_) => Value::Bool(false),
    }
}

#[cfg(test)]
mod tests {
    //! Each form of a question with each answer.

    use super::*;

    #[track_caller]
    fn check(interrupts: &[Value], decisions: &[Decision], asked: &str, resume: Value) {
        let mut questions = Questions::default();
        let all: Vec<_> = interrupts
            .iter()
            .enumerate()
            .flat_map(|(place, value)| {
                questions.add(Interrupt { id: format!("i{place}"), value: value.clone() })
            })
            .collect();
        let shown = all.iter().map(|one| format!("{} {}", one.action.name, one.action.arguments));
        assert_eq!(shown.collect::<Vec<_>>().join("; "), asked);
        for (question, decision) in all.iter().zip(decisions) {
            assert!(!questions.are_answered());
            questions.answer(&question.id, decision.clone());
        }
        assert!(questions.are_answered());
        assert_eq!(questions.resume(), resume);
    }

    #[test]
    fn an_answer_has_the_form_of_its_question() {
        use Decision::*;
        let deny = || Deny("no".to_owned());
        check(&[json!("Which city?")], &[Allow], "interrupt {\"value\":\"Which city?\"}", json!(true));
        check(&[json!("Which?")], &[deny()], "interrupt {\"value\":\"Which?\"}", json!(false));
        check(&[json!({ "to": 1 })], &[AllowWith(json!("Bern"))], "interrupt {\"to\":1}", json!("Bern"));
        check(
            &[json!("a"), json!("b")],
            &[Allow, deny()],
            "interrupt {\"value\":\"a\"}; interrupt {\"value\":\"b\"}",
            json!({ "i0": true, "i1": false }),
        );
        let requests = json!({ "action_requests": [
            { "name": "send", "args": { "to": "a" }, "description": "d" },
            { "name": "drop", "arguments": {} },
            { "name": "run", "args": {} },
        ] });
        check(
            &[requests],
            &[Allow, deny(), AllowWith(json!({ "x": 1 }))],
            "send {\"to\":\"a\"}; drop {}; run {}",
            json!({ "decisions": [
                { "type": "approve" },
                { "type": "reject", "message": "no" },
                { "type": "edit", "edited_action": { "name": "run", "args": { "x": 1 } } },
            ] }),
        );
        check(
            &[json!([{ "action_request": { "action": "send", "args": { "to": "a" } }, "config": {} }])],
            &[deny()],
            "send {\"to\":\"a\"}",
            json!([{ "type": "response", "args": "no" }]),
        );
    }

    #[test]
    fn an_answer_counts_once() {
        let mut questions = Questions::default();
        let id = questions.add(Interrupt { id: "i".into(), value: json!("sure?") }).remove(0).id;
        questions.answer(&"other".parse().unwrap(), Decision::Allow);
        assert!(!questions.are_answered());
        questions.answer(&id, Decision::Deny("no".into()));
        questions.answer(&id, Decision::Allow);
        assert_eq!(questions.resume(), json!(false));
    }
}
