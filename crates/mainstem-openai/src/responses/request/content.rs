//! The content of users and tools: [text, images] and [files].
//!
//! [text, images]: https://platform.openai.com/docs/guides/images-vision
//! [files]: https://platform.openai.com/docs/guides/file-inputs

use mainstem_message::{ContentBlock, DataSource};
use serde::Serialize;

use crate::request::DataUrl;

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(super) enum Part<'a> {
    #[serde(rename = "input_text")]
    Text { text: &'a str },
    #[serde(rename = "input_image")]
    Image { detail: &'static str, image_url: DataUrl<'a> },
    #[serde(rename = "input_file")]
    File(File<'a>),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum File<'a> {
    Url { file_url: &'a str },
    Data { filename: &'static str, file_data: DataUrl<'a> },
}

/// Returns a block as a part; `None` for one that is neither text nor data. Fails with what the API
/// has no form for.
pub(super) fn part(block: &ContentBlock) -> Option<Result<Part<'_>, String>> {
    match block {
        ContentBlock::Text { text, .. } if text.is_empty() => None,
        ContentBlock::Text { text, .. } => Some(Ok(Part::Text { text })),
        ContentBlock::Data { media_type, source, .. } => Some(data(media_type, source)),
        _ => None,
    }
}

fn data<'a>(media_type: &'a str, source: &'a DataSource) -> Result<Part<'a>, String> {
    let is = |kind| media_type.starts_with(kind);
    let image = |image_url| Part::Image { detail: "auto", image_url };
    match source {
        DataSource::Url(url) if is("image/") => Ok(image(DataUrl::Url(url))),
        DataSource::Base64(base64) if is("image/") => Ok(image(DataUrl::Data { media_type, base64 })),
        DataSource::Url(url) if !is("audio/") && !is("video/") => Ok(Part::File(File::Url { file_url: url })),
        DataSource::Base64(base64) => match filename(media_type) {
            Some(filename) => {
                let file_data = DataUrl::Data { media_type, base64 };
                Ok(Part::File(File::Data { filename, file_data }))
            }
            None => Err(media_type.to_owned()),
        },
        _ => Err(media_type.to_owned()),
    }
}

/// Returns a file name for a media type, with the extension by which the vendor knows the type.
fn filename(media_type: &str) -> Option<&'static str> {
    Some(match media_type {
        "application/pdf" => "file.pdf",
        "application/json" => "file.json",
        "application/msword" => "file.doc",
        "application/rtf" => "file.rtf",
        "application/vnd.oasis.opendocument.text" => "file.odt",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "file.docx",
        "application/vnd.ms-powerpoint" => "file.ppt",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "file.pptx",
        "application/vnd.ms-excel" => "file.xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "file.xlsx",
        "text/csv" => "file.csv",
        "text/html" => "file.html",
        "text/markdown" => "file.md",
        "text/plain" => "file.txt",
        "text/xml" | "application/xml" => "file.xml",
        _ => return None,
    })
}
