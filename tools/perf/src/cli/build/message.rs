//! What messages consist of.

use crate::cli::settings::{Settings, parts};
use crate::cli::values;
use crate::failure::Failure;
use crate::plan::{BodyPlan, MessagePlan, Properties};
use model::table::Value;
use std::path::PathBuf;

/// A sequence number of 4 bytes and a time stamp of 8.
const SMALLEST: usize = 12;
/// What `--verify` needs in a body.
pub const SMALLEST_VERIFIED: usize = 40;
/// The largest message that RabbitMQ takes, whatever its settings.
const LARGEST: u32 = 512 << 20;

pub fn plan(settings: &Settings<'_>) -> Result<MessagePlan, Failure> {
    Ok(MessagePlan {
        body: body(settings)?,
        properties: properties(settings)?,
    })
}

/// Files win over JSON, JSON over sizes, as in PerfTest.
fn body(settings: &Settings<'_>) -> Result<BodyPlan, Failure> {
    let default = if settings.has("verify") {
        SMALLEST_VERIFIED
    } else {
        SMALLEST
    };
    let size = settings.whole("size", 0, 0..=LARGEST)? as usize;
    let size = if size == 0 { default } else { size.max(SMALLEST) };
    if let Some(list) = settings.text("body") {
        return files(settings, &list);
    }
    let fields = settings.whole("body-field-count", 1000, 1..=1_000_000)?;
    let bodies = settings.whole("body-count", 100, 1..=1_000_000)?;
    if settings.has("json-body") {
        return Ok(BodyPlan::Json { size, fields, bodies });
    }
    let sizes = values::variable("variable-size", &settings.list("variable-size"))?;
    if let Some((size, _)) = sizes.iter().find(|(size, _)| *size > LARGEST) {
        return Err(settings.refuse(
            "variable-size",
            &size.to_string(),
            format!("a size of at most {LARGEST} bytes"),
        ));
    }
    if sizes.is_empty() {
        return Ok(BodyPlan::Size(size));
    }
    Ok(BodyPlan::VariableSize(
        sizes
            .into_iter()
            .map(|(size, holds)| ((size as usize).max(SMALLEST), holds))
            .collect(),
    ))
}

fn files(settings: &Settings<'_>, list: &str) -> Result<BodyPlan, Failure> {
    let files: Vec<PathBuf> = parts(list).into_iter().map(PathBuf::from).collect();
    if files.is_empty() {
        return Err(settings.refuse("body", list, "the name of at least one file"));
    }
    for file in &files {
        std::fs::File::open(file).map_err(|error| {
            let text = format!(
                "the message file {} cannot be read ({error}): check --body.",
                file.display()
            );
            Failure::File(text)
        })?;
    }
    Ok(BodyPlan::Files(files))
}

/// Names that are properties set these, all others are headers.
fn properties(settings: &Settings<'_>) -> Result<Properties, Failure> {
    let mut properties = Properties {
        content_type: settings.text("body-content-type"),
        ..Properties::default()
    };
    let pairs = values::pairs("message-properties", &settings.list("message-properties"))?;
    for (name, value) in pairs.iter() {
        let text = written(value);
        let refuse =
            |write: &str| settings.refuse("message-properties", &format!("{}={text}", lossy(name)), write);
        let short = || match text.len() {
            0..=255 => Ok(Some(text.clone())),
            _ => Err(refuse("at most 255 bytes")),
        };
        let small = |write: &str| text.parse::<u8>().map(Some).map_err(|_| refuse(write));
        match name {
            b"contentType" => properties.content_type = short()?,
            b"contentEncoding" => properties.content_encoding = short()?,
            b"deliveryMode" => properties.delivery_mode = small("a delivery mode of 1 or 2")?,
            b"priority" => properties.priority = small("a priority from 0 to 255")?,
            b"correlationId" => properties.correlation_id = short()?,
            b"replyTo" => properties.reply_to = short()?,
            b"expiration" => properties.expiration = short()?,
            b"messageId" => properties.message_id = short()?,
            b"timestamp" => {
                let time = text
                    .parse::<jiff::Timestamp>()
                    .ok()
                    .and_then(|time| u64::try_from(time.as_second()).ok());
                properties.timestamp =
                    Some(time.ok_or_else(|| refuse("a time such as 2022-06-03T07:45:54Z"))?);
            }
            b"type" => properties.kind = short()?,
            b"userId" => properties.user_id = short()?,
            b"appId" => properties.app_id = short()?,
            b"clusterId" => properties.cluster_id = short()?,
            _ => properties.headers.insert(name.to_vec(), value.clone()),
        }
    }
    Ok(properties)
}

/// A typed value as it was written.
fn written(value: &Value) -> String {
    match value {
        Value::Bool(it) => it.to_string(),
        Value::Long(it) => it.to_string(),
        other => lossy(other.as_bytes().unwrap_or_default()),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
