//! Puts the frames of one channel together: methods alone, or methods with header and body.

use super::frame::{Frame, Part};
use super::header::ContentHeader;
use super::method::{Method, MethodId};
use super::reply::{Exception, ReplyCode};
use model::Limits;
use model::properties::BasicProperties;

/// RabbitMQ's absolute limit for a body, in bytes; beyond it the connection is closed.
const LARGEST_BODY: u64 = 512 * 1024 * 1024;
/// A buffer that grew beyond this for one message is given back after it, in bytes: a connection has thousands of channels.
const KEPT: usize = 64 * 1024;

/// The state of one channel's content: which frame must come next.
///
/// A message's frames are collected in one buffer as they come: method, properties, body. Its size never goes
/// beyond what was received, nor beyond `Limits::message_bytes` and one frame.
#[derive(Debug, Default)]
pub struct Assembler {
    state: State,
    /// Arguments of the method, then the properties, then the body so far.
    held: Vec<u8>,
    /// How it was before the frame that made the last content whole, and how much was held then.
    before: Option<(State, usize)>,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Method,
    /// The header of the content of this method.
    Header(MethodId),
    Body(Collecting),
    /// A message that is too large, of which nothing is kept: so many bytes of its body are still to come.
    TooLarge {
        method: MethodId,
        size: u64,
        most: u64,
        left: u64,
    },
}

#[derive(Debug, Clone, Copy)]
struct Collecting {
    method: MethodId,
    /// Where in `held` the properties begin.
    properties: usize,
    /// Where in `held` the body begins.
    body: usize,
    /// How many bytes of the body are still to come.
    left: u64,
}

/// What a frame led to.
#[derive(Debug, PartialEq)]
pub enum Step<'a> {
    /// More frames must come first.
    More,
    /// A method without content.
    Method(Method<'a>),
    /// A method with its whole content.
    Content(Content<'a>),
    /// The message, which has come to its end, is refused: an error of the channel. As in RabbitMQ its publisher is not
    /// told before all of it was sent; what came of its body was dropped.
    Refused(Exception),
}

/// A method with its whole content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// `basic.publish` from a client; `basic.deliver`, `basic.return` or `basic.get-ok` from a server.
    pub method: Method<'a>,
    /// Flags and list, checked.
    pub properties: &'a [u8],
    /// The whole body.
    pub body: &'a [u8],
}

impl Assembler {
    /// Expects a method.
    pub fn new() -> Self {
        Self::default()
    }

    /// True if the next frame must be a method's: nothing is half received.
    #[inline]
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Method)
    }

    /// What was received of a message that is not complete yet, its method and properties included, in bytes.
    #[inline]
    pub fn unfinished(&self) -> usize {
        self.held.len()
    }

    /// What is held, in bytes of memory. It grows with what is received and never with what is announced.
    pub fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// The last content was taken and is not fed again: nothing of it is held any longer.
    pub fn finish(&mut self) {
        self.before = None;
        self.held.clear();
        if self.held.capacity() > KEPT {
            self.held = Vec::new();
        }
    }

    /// Takes the channel's next frame.
    ///
    /// # Errors
    /// Of the connection: a frame that was not due (505), a body longer than announced or beyond 512 MiB, a
    /// frame or method that cannot be read (501), an unknown method (540), malformed properties (502).
    pub fn feed<'a>(&'a mut self, frame: &Frame<'a>, limits: &Limits) -> Result<Step<'a>, Exception> {
        let part = frame.part()?;
        if matches!(part, Part::Heartbeat) {
            return Err(frame.unexpected());
        }
        match (self.state, part) {
            (State::Method, Part::Method(id, fields)) => self.method(id, fields),
            (State::Method, _) => Err(unexpected(
                "expected method frame, got non method frame instead".into(),
                MethodId::NONE,
            )),
            (State::Header(id), part) => self.header(id, part, limits),
            (State::Body(collecting), Part::Body(piece)) => self.body(collecting, piece),
            (
                State::TooLarge {
                    method,
                    size,
                    most,
                    left,
                },
                Part::Body(piece),
            ) => {
                let left = still_left(left, piece, method)?;
                if left == 0 {
                    self.state = State::Method;
                    return Ok(Step::Refused(too_large(size, most, method)));
                }
                self.state = State::TooLarge {
                    method,
                    size,
                    most,
                    left,
                };
                Ok(Step::More)
            }
            (State::Body(Collecting { method, .. }) | State::TooLarge { method, .. }, _) => Err(unexpected(
                "expected content body, got non content body frame instead".into(),
                method,
            )),
        }
    }

    /// Forgets the frame that made the last content whole: it will be fed again.
    pub fn take_back(&mut self) {
        if let Some((state, held)) = self.before.take() {
            self.state = state;
            self.held.truncate(held);
        }
    }

    fn method<'a>(&mut self, id: MethodId, fields: &'a [u8]) -> Result<Step<'a>, Exception> {
        let method = Method::decode(id, fields).map_err(|error| error.exception())?;
        if !id.has_content() {
            return Ok(Step::Method(method));
        }
        self.finish();
        self.held.extend_from_slice(fields);
        self.state = State::Header(id);
        Ok(Step::More)
    }

    fn header<'a>(
        &'a mut self,
        method: MethodId,
        part: Part<'a>,
        limits: &Limits,
    ) -> Result<Step<'a>, Exception> {
        let header = match part {
            // RabbitMQ takes a header with a weight for no header at all.
            Part::Header(header) if header.weight == 0 => header,
            _ => {
                let text = format!(
                    "expected content header for class {}, got non content header frame instead",
                    method.class
                );
                return Err(unexpected(text, method));
            }
        };
        check_header(&header, method)?;
        if header.body_size > limits.message_bytes {
            self.state = State::TooLarge {
                method,
                size: header.body_size,
                most: limits.message_bytes,
                left: header.body_size,
            };
            return Ok(Step::More);
        }
        BasicProperties::check(header.properties, limits)
            .map_err(|error| Exception::new(ReplyCode::SyntaxError, error.to_string(), method))?;
        if header.body_size == 0 {
            self.before = Some((self.state, self.held.len()));
            self.state = State::Method;
            return content(method, &self.held, header.properties, &[]);
        }
        let properties = self.held.len();
        self.held.extend_from_slice(header.properties);
        let body = self.held.len();
        self.state = State::Body(Collecting {
            method,
            properties,
            body,
            left: header.body_size,
        });
        Ok(Step::More)
    }

    fn body<'a>(&'a mut self, collecting: Collecting, piece: &'a [u8]) -> Result<Step<'a>, Exception> {
        let Collecting {
            method,
            properties,
            body,
            left,
        } = collecting;
        let left = still_left(left, piece, method)?;
        if left > 0 {
            self.held.extend_from_slice(piece);
            self.state = State::Body(Collecting { left, ..collecting });
            return Ok(Step::More);
        }
        self.before = Some((self.state, self.held.len()));
        self.state = State::Method;
        // A body in one frame is handed on from where it lies.
        let whole_in_one = self.held.len() == body;
        if !whole_in_one {
            self.held.extend_from_slice(piece);
        }
        let (head, held_body) = self.held.split_at(body);
        let (fields, properties) = head.split_at(properties);
        content(
            method,
            fields,
            properties,
            if whole_in_one { piece } else { held_body },
        )
    }
}

fn content<'a>(
    id: MethodId,
    fields: &'a [u8],
    properties: &'a [u8],
    body: &'a [u8],
) -> Result<Step<'a>, Exception> {
    let method = Method::decode(id, fields).map_err(|error| error.exception())?;
    Ok(Step::Content(Content {
        method,
        properties,
        body,
    }))
}

fn check_header(header: &ContentHeader<'_>, method: MethodId) -> Result<(), Exception> {
    if header.class != method.class {
        let text = format!(
            "expected content header for class {}, got one for class {} instead",
            method.class, header.class
        );
        return Err(unexpected(text, method));
    }
    if header.body_size > LARGEST_BODY {
        let text = format!(
            "content body size {} exceeds maximum allowed size {LARGEST_BODY}",
            header.body_size
        );
        return Err(Exception::new(ReplyCode::FrameError, text, method));
    }
    Ok(())
}

fn still_left(left: u64, piece: &[u8], method: MethodId) -> Result<u64, Exception> {
    left.checked_sub(piece.len() as u64).ok_or_else(|| {
        Exception::new(
            ReplyCode::FrameError,
            "content body frame exceeds remaining content size",
            method,
        )
    })
}

/// The channel error for a message above the configured size.
fn too_large(size: u64, limit: u64, method: MethodId) -> Exception {
    let text = format!("message size {size} is larger than configured max size {limit}");
    Exception::new(ReplyCode::PreconditionFailed, text, method)
}

fn unexpected(text: String, method: MethodId) -> Exception {
    Exception::new(ReplyCode::UnexpectedFrame, text, method)
}

#[cfg(test)]
mod tests;
