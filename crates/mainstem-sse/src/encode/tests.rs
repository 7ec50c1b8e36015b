//! Frames, and their way back through the decoder.

use proptest::{option, prelude::*};

use super::*;
use crate::Decoder;

fn check(frame: Frame<'_>, expected: &str) {
    assert_eq!(frame.encode(), expected, "{frame:?}");
}

#[test]
fn frames_are_written_field_by_field() {
    check(Frame::data("a"), "data: a\n\n");
    check(Frame::data(""), "data: \n\n");
    check(Frame::data(" a"), "data:  a\n\n");
    check(Frame::default(), "\n");
    check(Frame::comment("ping"), ": ping\n\n");
    check(Frame::comment("").with_retry(Duration::from_micros(1_500_999)), ": \nretry: 1500\n\n");
    check(
        Frame::data("d").with_retry(Duration::ZERO).with_event("e").with_id("i").with_comment("c"),
        ": c\nid: i\nevent: e\nretry: 0\ndata: d\n\n",
    );
}

#[test]
fn every_line_of_data_gets_its_own_field() {
    check(Frame::data("a\nb"), "data: a\ndata: b\n\n");
    check(Frame::data("a\r\nb\rc\n"), "data: a\ndata: b\ndata: c\ndata: \n\n");
    check(Frame::data("\n\r"), "data: \ndata: \ndata: \n\n");
    check(Frame::comment("a\n\nb"), ": a\n: \n: b\n\n");
}

#[test]
fn foreign_text_cannot_forge_a_field() {
    check(Frame::data("a\n\nevent: forged\n"), "data: a\ndata: \ndata: event: forged\ndata: \n\n");
    check(Frame::data("a").with_event("e\r\ndata: forged"), "event: edata: forged\ndata: a\n\n");
    check(Frame::data("a").with_id("1\n\n\0data: forged"), "id: 1data: forged\ndata: a\n\n");
    check(Frame::comment("c\ndata: forged"), ": c\n: data: forged\n\n");
}

#[test]
fn a_received_event_is_passed_on_as_it_was() {
    let sent = Frame::data("a\nb").with_id("1").with_retry(Duration::from_secs(1)).encode();
    let received = Decoder::new().decode(&mut sent.clone()).unwrap().unwrap();
    assert_eq!(Frame::from(&received).encode(), sent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_encoded_is_decoded(
        data in "[\\PC\n :]{0,40}",
        event in option::of("[\\PC :]{1,9}"),
        id in option::of("[\\PC :]{1,9}"),
        retry in option::of(0_u32..),
        comment in option::of("[\\PC\r\n]{0,20}"),
    ) {
        let retry = retry.map(|millis| Duration::from_millis(millis.into()));
        let frame = Frame {
            comment: comment.as_deref(),
            id: id.as_deref(),
            event: event.as_deref(),
            retry,
            data: Some(&data),
        };
        let mut bytes = frame.encode();
        let mut decoder = Decoder::new();
        let decoded = decoder.decode(&mut bytes).unwrap().unwrap();
        prop_assert_eq!(&decoded.data, &data);
        prop_assert_eq!(&*decoded.event, event.as_deref().unwrap_or("message"));
        prop_assert_eq!(decoded.id.as_deref(), id.as_deref());
        prop_assert_eq!(decoded.retry, retry);
        prop_assert_eq!(decoder.decode(&mut bytes), Ok(None));
    }

    #[test]
    fn any_text_is_one_frame(data: String, event: String, id: String, comment: String) {
        let frame = Frame::data(&data).with_event(&event).with_id(&id).with_comment(&comment);
        let mut bytes = frame.encode();
        let mut decoder = Decoder::new();
        prop_assert!(decoder.decode(&mut bytes).unwrap().is_some());
        prop_assert_eq!(decoder.finish(), Ok(None));
        prop_assert!(bytes.is_empty());
    }
}
