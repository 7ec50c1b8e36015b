//! The answers to interrupts: from the value of `command.resume` to decisions. Pure.

use mainstem::{
    event::Decision,
    message::{ConfirmId, ToolCall},
};
use serde_json::Value;

use super::request::wrong;
use crate::problem::Problem;

/// A request for approval that has no answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    /// The number of its event.
    pub(super) seq: u64,
    pub(super) id: ConfirmId,
    pub(super) calls: Vec<ToolCall>,
}

/// The reason of a denial that has none.
const DENIED: &str = "denied by the user";

/// Returns the decision about each question that a value answers: the value itself if there is one
/// question, else a map by the ids of interrupts.
///
/// # Errors
/// The value answers nothing, or is not an answer.
pub(super) fn decisions(
    value: &Value,
    questions: &[Question],
) -> Result<Vec<(ConfirmId, Decision)>, Problem> {
    let by_id =
        |question: &Question| value.get(question.id.as_str()).map(|answer| (question.clone(), answer));
    let answered: Vec<_> = questions.iter().filter_map(by_id).collect();
    let answered = match (questions, answered.is_empty()) {
        ([], _) => return Err(wrong("no run of this thread waits for an answer")),
        ([only], true) => vec![(only.clone(), value)],
        (_, false) => answered,
        (several, true) => {
            let ids: Vec<_> = several.iter().map(|question| question.id.as_str()).collect();
            return Err(wrong(format!(
                "`resume` has to be a map by the ids of interrupts: {}",
                ids.join(", ")
            )));
        }
    };
    answered.iter().map(|(question, answer)| Ok((question.id.clone(), decision(answer, question)?))).collect()
}

/// Reads an answer: `{"decisions": [{"type": "approve" | "edit" | "reject"}]}`, one such decision,
/// or `true` and `false`.
fn decision(answer: &Value, question: &Question) -> Result<Decision, Problem> {
    let one = std::slice::from_ref(answer);
    let all = answer.get("decisions").or(Some(answer)).and_then(Value::as_array).map_or(one, Vec::as_slice);
    if all.len() != 1 && all.len() != question.calls.len() {
        return Err(wrong(format!(
            "the interrupt asks about {} calls; `decisions` has {}",
            question.calls.len(),
            all.len()
        )));
    }
    let mut decided = Decision::Allow;
    for answer in all {
        match single(answer)? {
            // A request about several calls has one answer.
            denied @ Decision::Deny(_) => return Ok(denied),
            Decision::AllowWith(_) if question.calls.len() != 1 => {
                return Err(wrong("the arguments of one of several calls can't be edited"));
            }
            other => decided = other,
        }
    }
    Ok(decided)
}

fn single(answer: &Value) -> Result<Decision, Problem> {
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let kind = answer.as_str().or_else(|| text("type"));
    match (answer, kind) {
        (Value::Bool(true), _) | (_, Some("approve" | "accept" | "yes")) => Ok(Decision::Allow),
        (Value::Bool(false), _) | (_, Some("reject" | "ignore" | "no")) => {
            Ok(Decision::Deny(text("message").unwrap_or(DENIED).to_owned()))
        }
        (_, Some("response" | "respond")) => {
            let reason = text("args").or_else(|| text("message"));
            Ok(Decision::Deny(reason.unwrap_or(DENIED).to_owned()))
        }
        (_, Some("edit")) => {
            let args = answer.pointer("/edited_action/args").or_else(|| answer.pointer("/args/args"));
            let args = args.ok_or_else(|| wrong("an edit has `edited_action.args`"))?;
            Ok(Decision::AllowWith(args.clone()))
        }
        _ => Err(wrong(
            "an answer is true, false, or {\"decisions\": [{\"type\": \"approve\"}]}, with \"approve\", \"edit\" or \"reject\"",
        )),
    }
}

#[cfg(test)]
mod tests {
    //! Each form of an answer.

    use serde_json::json;

    use super::*;

    fn question(id: &str, calls: usize) -> Question {
        let call = |number| ToolCall::new(format!("c{number}").as_str(), "send", "{}");
        Question { seq: 1, id: id.parse().unwrap(), calls: (0..calls).map(call).collect() }
    }

    #[test]
    fn an_answer_is_a_decision() {
        #[track_caller]
        fn check(value: Value, calls: usize, expected: Result<Decision, &str>) {
            let decided = decisions(&value, &[question("q", calls)]);
            match expected {
                Ok(decision) => assert_eq!(decided.unwrap()[0].1, decision, "{value}"),
                Err(why) => {
                    let shown = format!("{:?}", decided.unwrap_err());
                    assert!(shown.contains(why), "{shown}");
                }
            }
        }
        let deny = |why: &str| Ok(Decision::Deny(why.into()));
        check(json!(true), 2, Ok(Decision::Allow));
        check(json!(false), 1, deny(DENIED));
        check(json!({ "decisions": [{ "type": "approve" }] }), 1, Ok(Decision::Allow));
        check(
            json!({ "decisions": [{ "type": "approve" }, { "type": "reject", "message": "no" }] }),
            2,
            deny("no"),
        );
        check(json!([{ "type": "response", "args": "later" }]), 1, deny("later"));
        check(json!({ "q": "approve" }), 1, Ok(Decision::Allow));
        let edit = json!({ "type": "edit", "edited_action": { "name": "send", "args": { "to": 1 } } });
        check(json!([&edit, { "type": "approve" }]), 2, Err("can't be edited"));
        check(json!({ "decisions": [edit] }), 1, Ok(Decision::AllowWith(json!({ "to": 1 }))));
        check(json!({ "decisions": [] }), 1, Err("`decisions` has 0"));
        check(json!("perhaps"), 1, Err("an answer is true, false"));
    }

    #[test]
    fn several_questions_are_answered_by_their_ids() {
        let questions = [question("a", 1), question("b", 1)];
        assert!(decisions(&json!(true), &questions).is_err());
        let decided = decisions(&json!({ "b": true }), &questions).unwrap();
        assert_eq!(decided, [("b".parse().unwrap(), Decision::Allow)]);
        assert!(decisions(&json!(true), &[]).is_err());
    }
}
