//! The content of a user message: text, or a list of parts if there is data.

use std::borrow::Cow;

use mainstem_message::{ContentBlock, DataSource};
use serde::Serialize;

use super::{address::DataUrl, message::text};

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Image<'a> },
    InputAudio { input_audio: Audio<'a> },
    File { file: File<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct Image<'a> {
    url: DataUrl<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct Audio<'a> {
    data: &'a str,
    format: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct File<'a> {
    filename: &'static str,
    file_data: DataUrl<'a>,
}

/// Returns the content of a message; `None` for one without text and data.
pub(super) fn content(blocks: &[ContentBlock]) -> Result<Option<Content<'_>>, &'static str> {
    if !blocks.iter().any(|block| matches!(block, ContentBlock::Data { .. })) {
        let text = text(blocks);
        return Ok(Some(text).filter(|text| !text.is_empty()).map(Content::Text));
    }
    blocks.iter().filter_map(part).collect::<Result<_, _>>().map(|parts| Some(Content::Parts(parts)))
}

/// Returns the data blocks alone.
pub(super) fn data(blocks: &[ContentBlock]) -> impl Iterator<Item = Result<Part<'_>, &'static str>> {
    blocks.iter().filter(|block| matches!(block, ContentBlock::Data { .. })).filter_map(part)
}

fn part(block: &ContentBlock) -> Option<Result<Part<'_>, &'static str>> {
    match block {
        ContentBlock::Text { text, .. } => Some(Ok(Part::Text { text })),
        ContentBlock::Data { media_type, source, .. } => Some(attachment(media_type, source)),
        _ => None,
    }
}

fn attachment<'a>(media_type: &'a str, source: &'a DataSource) -> Result<Part<'a>, &'static str> {
    let audio = match media_type {
        "audio/wav" | "audio/x-wav" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    };
    match (source, audio) {
        (DataSource::Base64(data), Some(format)) => {
            Ok(Part::InputAudio { input_audio: Audio { data, format } })
        }
        (DataSource::Base64(base64), None) if media_type.starts_with("image/") => {
            Ok(Part::ImageUrl { image_url: Image { url: DataUrl::Data { media_type, base64 } } })
        }
        (DataSource::Url(url), _) if media_type.starts_with("image/") => {
            Ok(Part::ImageUrl { image_url: Image { url: DataUrl::Url(url) } })
        }
        (DataSource::Base64(base64), None) if media_type == "application/pdf" => {
            let file_data = DataUrl::Data { media_type, base64 };
            Ok(Part::File { file: File { filename: "file.pdf", file_data } })
        }
        _ => Err(
            "takes images, and wav, mp3 or PDF data that is in the message itself; send such data as text",
        ),
    }
}
