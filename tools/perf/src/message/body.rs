//! Where bodies come from: nowhere (zeros), files, or chance.

use super::stamp;
use crate::failure::Failure;
use crate::plan::{BodyPlan, Plan};
use std::fs;

/// No message of AMQP 0-9-1 is larger in RabbitMQ, in bytes.
const LARGEST: u64 = 512 * 1024 * 1024;

/// A body, and whether the stamp may be written into it.
pub struct Body {
    pub bytes: Vec<u8>,
    pub stamped: bool,
}

/// The bodies of a plan, in the order in which they are used.
///
/// # Errors
/// If a file can't be read.
pub fn bodies(plan: &Plan) -> Result<Vec<Body>, Failure> {
    match &plan.message.body {
        BodyPlan::Size(size) => Ok(vec![blank(*size, plan.verify)]),
        BodyPlan::VariableSize(sizes) => {
            Ok(sizes.iter().map(|(size, _)| blank(*size, plan.verify)).collect())
        }
        BodyPlan::Files(paths) => paths.iter().map(|path| file(path)).collect(),
        BodyPlan::Json { size, fields, bodies } => {
            // All producers together have as many as were asked for: thousands of them would fill the memory otherwise.
            let producers = plan.producing.producers * plan.producing.channels;
            let share = bodies.div_ceil(producers.max(1)).max(1);
            Ok((0..share).map(|_| json(*size, *fields)).collect())
        }
    }
}

/// Zeros, as PerfTest's are; behind the stamp something that shows damage if messages are to be verified.
fn blank(size: usize, verify: bool) -> Body {
    let mut bytes = vec![0; size.max(stamp::SMALLEST)];
    if verify {
        let filler = bytes.iter_mut().enumerate().skip(stamp::WITH_LAG);
        filler.for_each(|(at, byte)| *byte = (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]);
    }
    Body { bytes, stamped: true }
}

fn file(path: &std::path::Path) -> Result<Body, Failure> {
    let trouble = |what: String| Failure::File(format!("The body {} can't be used: {what}", path.display()));
    let length = fs::metadata(path)
        .map_err(|error| trouble(error.to_string()))?
        .len();
    if length > LARGEST {
        return Err(trouble(format!(
            "it has {length} bytes, and no broker takes more than {LARGEST}"
        )));
    }
    let bytes = fs::read(path).map_err(|error| trouble(error.to_string()))?;
    Ok(Body {
        bytes,
        stamped: false,
    })
}

/// An object of `fields` fields at most and about `size` bytes: strings, numbers and booleans by chance.
fn json(size: usize, fields: usize) -> Body {
    let mut text = String::with_capacity(size + 64);
    text.push('{');
    for field in 0..fields.max(1) {
        if text.len() + 2 >= size && field > 0 {
            break;
        }
        if field > 0 {
            text.push(',');
        }
        let left = size.saturating_sub(text.len());
        let last = field + 1 == fields;
        let value = match fastrand::u8(0..4) {
            0 if !last => fastrand::i32(..).to_string(),
            1 if !last => fastrand::bool().to_string(),
            _ => {
                let room = left.saturating_sub(16);
                let length = if last {
                    room
                } else {
                    fastrand::usize(5..40).min(room)
                };
                format!(
                    "\"{}\"",
                    std::iter::repeat_with(fastrand::alphanumeric)
                        .take(length)
                        .collect::<String>()
                )
            }
        };
        text.push_str(&format!("\"field{field}\":{value}"));
    }
    text.push('}');
    Body {
        bytes: text.into_bytes(),
        stamped: false,
    }
}
