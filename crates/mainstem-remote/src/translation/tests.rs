//! Whatever a protocol says, in whatever order, the events are admitted.

use mainstem_event::{EventKind, Outcome};
use mainstem_message::{ContentBlock, Failure, ToolCallId, ToolState, Usage};
use proptest::prelude::*;

use super::Translation;
use crate::admission::{Admission, Admitted, ROOT};

#[derive(Clone, Copy, Debug)]
enum Said {
    Text,
    Thinking,
    Data,
    EndBlock,
    EndAnswer,
    Call(u8),
    Arguments(u8),
    EndCall(u8),
    BeginResult(u8),
    Result(u8),
    ResultData(u8),
    EndResult(u8),
    Usage,
    TakeBack,
    End,
}

fn call(number: u8) -> ToolCallId {
    ToolCallId::new(format!("call-{number}"))
}

fn say(agent: &mut Translation, said: Said) {
    match said {
        Said::Text => agent.text("text"),
        Said::Thinking => agent.thinking("thinking"),
        Said::Data => agent.data("image/png", "aGk="),
        Said::EndBlock => agent.end_block(),
        Said::EndAnswer => agent.end_answer(),
        Said::Call(one) => agent.call(&call(one), "search"),
        Said::Arguments(one) => agent.arguments(&call(one), "{}"),
        Said::EndCall(one) => agent.end_call(&call(one)),
        Said::BeginResult(one) => agent.begin_result(&call(one), "search"),
        Said::Result(one) => agent.result(&call(one), "found"),
        Said::ResultData(one) => agent.result_data(&call(one), ContentBlock::text("more")),
        Said::EndResult(one) => agent.end_result(&call(one), ToolState::Success),
        Said::Usage => agent.usage(Usage::default()),
        Said::TakeBack => agent.take_back(EventKind::model_retry(1, 0, Failure::new("cut", "cut"))),
        Said::End => agent.end(Outcome::Success, None),
    }
}

fn shown(agent: &mut Translation) -> String {
    let show = |kind: &EventKind| kind.name().to_lowercase();
    agent.take().iter().map(|event| show(&event.kind)).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_open_ends_when_it_has_to() {
    use Said::*;
    #[track_caller]
    fn check(said: &[Said], expected: &str) {
        let mut agent = Translation::new("m");
        said.iter().for_each(|one| say(&mut agent, *one));
        assert_eq!(shown(&mut agent), expected);
    }
    check(&[], "");
    check(
        &[Text, Thinking],
        "model_call_start text_block_start text_block_delta text_block_end thinking_block_start thinking_block_delta",
    );
    check(&[End, Text, Call(1), End], "agent_end");
    check(
        &[Call(1), Arguments(1), BeginResult(1), Result(1), EndResult(1), End],
        "model_call_start tool_call_start tool_call_delta tool_call_end model_call_end tool_result_start tool_result_text_delta tool_result_end agent_end",
    );
    // A result that was not announced, and a call without a result.
    check(
        &[BeginResult(1), EndResult(1)],
        "model_call_start tool_call_start tool_call_end model_call_end tool_result_start tool_result_end",
    );
    check(
        &[Call(1), BeginResult(2), Text],
        "model_call_start tool_call_start tool_call_start tool_call_end tool_call_end model_call_end tool_result_start \
         tool_result_start tool_result_text_delta tool_result_end tool_result_end model_call_start text_block_start text_block_delta",
    );
    // An answer ends when it is said to, and data is a block of its own.
    check(
        &[Text, Data, EndAnswer, EndAnswer, Text],
        "model_call_start text_block_start text_block_delta text_block_end data_block_start data_block_delta \
         data_block_end model_call_end model_call_start text_block_start text_block_delta",
    );
    check(
        &[Call(1), EndAnswer, BeginResult(1), ResultData(1), EndResult(1), ResultData(1)],
        "model_call_start tool_call_start tool_call_end model_call_end tool_result_start tool_result_data_delta \
         tool_result_end",
    );
    // What is taken back ends, and its calls are known no more.
    check(
        &[Text, Call(1), TakeBack, Arguments(1), EndCall(1), BeginResult(1), Call(1), Text],
        "model_call_start text_block_start text_block_delta text_block_end tool_call_start tool_call_end model_retry \
         text_block_start text_block_delta",
    );
    check(
        &[TakeBack, Text, EndAnswer, TakeBack],
        "model_retry model_call_start text_block_start text_block_delta text_block_end model_call_end model_retry",
    );
    // Once is enough.
    check(
        &[BeginResult(1), EndResult(1), EndResult(1), BeginResult(1), Call(1), Result(1)],
        "model_call_start tool_call_start tool_call_end model_call_end tool_result_start tool_result_end",
    );
}

fn said() -> impl Strategy<Value = Said> {
    use Said::*;
    prop_oneof![
        Just(Text),
        Just(Thinking),
        Just(Data),
        Just(EndBlock),
        Just(EndAnswer),
        Just(Usage),
        (0..3_u8).prop_map(Call),
        (0..3_u8).prop_map(Arguments),
        (0..3_u8).prop_map(EndCall),
        (0..3_u8).prop_map(BeginResult),
        (0..3_u8).prop_map(Result),
        (0..3_u8).prop_map(ResultData),
        (0..3_u8).prop_map(EndResult),
        Just(TakeBack),
        Just(End),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn any_order_is_lawful(steps in prop::collection::vec(said(), 0..40)) {
        let mut agent = Translation::new("m");
        agent.start("far", Vec::new());
        steps.iter().for_each(|one| say(&mut agent, *one));
        agent.end(Outcome::Success, None);
        let mut admission = Admission::new("sub-far".parse().unwrap(), 0);
        let mut ends = 0;
        for event in agent.take() {
            let admitted = admission.admit(event).map_err(|error| TestCaseError::fail(error.to_string()))?;
            ends += u32::from(matches!(admitted, Admitted::End { invocation: ROOT, .. }));
        }
        prop_assert_eq!(ends, 1);
    }
}
