//! When the second model is called.

use futures_util::StreamExt;

use super::*;
use crate::{ScriptedModel, scripted::Turn};

async fn check(first: Turn, second: Turn, expected: &[&str]) {
    let model = Fallback::new(
        ScriptedModel::named("one").agent("", [first]),
        ScriptedModel::named("two").agent("", [second]),
    );
    let got: Vec<_> = model
        .stream(ModelRequest::default())
        .map(|delta| match delta {
            Ok(ModelDelta::Text(text)) => text,
            Ok(ModelDelta::Fallback { from, to, reason }) => format!("{from}→{to} {}", reason.code),
            Ok(other) => format!("{other:?}").split(['(', ' ']).next().unwrap().to_owned(),
            Err(error) => format!("error {error}"),
        })
        .collect()
        .await;
    assert_eq!(got, expected);
}

#[tokio::test]
async fn the_second_is_asked_when_the_first_fails() {
    check(Turn::new().text("a"), Turn::new().text("b"), &["a", "Usage", "Stop"]).await;
    check(Turn::new().cut(), Turn::new().text("b"), &["one→two transport", "b", "Usage", "Stop"]).await;
    let cut = ["a", "one→two transport", "b", "Usage", "Stop"];
    check(Turn::new().text("a").cut(), Turn::new().text("b"), &cut).await;
    check(Turn::new().cut(), Turn::new().cut(), &["one→two transport", "error the connection was cut"]).await;
}
