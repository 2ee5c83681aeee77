//! AMQP 0-9-1 as RabbitMQ speaks it.
//!
//! Reading order, and where a caller begins:
//!
//! 1. [`frame`]: [`next_frame`] cuts a read buffer into frames; [`Frame::part`] says what a frame is.
//! 2. [`field`]: how a method's arguments are read and written, one trait for all types.
//! 3. [`method`]: one table of all methods; [`Method::decode`] and [`Arguments`] come from it, for both
//!    directions.
//! 4. [`header`]: the content header.
//! 5. [`reply`]: [`ReplyCode`] and [`Exception`], the errors of the protocol with RabbitMQ's texts.
//! 6. [`assembler`]: per channel, puts method, header and body frames together; the general way in.
//! 7. [`publish`]: [`PublishScanner`], the fast way in: a whole `basic.publish` in one pass over the buffer.
//!    [`mod@scan_ack`] does the same for a consumer's `basic.ack`, [`mod@scan_deliver`] on a client's side for a delivery.
//! 8. [`encode`] and [`deliver`]: the way out; [`DeliverTemplate`] is its fast case.
//! 9. [`handshake`]: from the protocol header to an open connection, the server's side.
//!
//! A front end's loop over a read buffer, once the connection is open:
//!
//! ```text
//! if channel is idle, try PublishScanner::scan, scan_ack  -> a publish, an ack, or "not that"
//! else next_frame -> Frame::part -> heartbeat, or channel 0 -> Method::decode,
//!                                   or Assembler::feed of the channel -> method, content, more, refusal
//! ```
//!
//! Slices in what comes out point into the read buffer (or into the assembler); nothing is copied that need
//! not be.

pub mod assembler;
pub mod deliver;
pub mod encode;
pub mod field;
pub mod frame;
pub mod handshake;
pub mod header;
pub mod method;
pub mod publish;
pub mod reply;
pub mod scan_ack;
pub mod scan_deliver;

pub use assembler::{Assembler, Content, Step};
pub use deliver::DeliverTemplate;
pub use field::{LongStr, RawTable};
pub use frame::{Frame, FrameError, Part, next_frame};
pub use handshake::{Credentials, Handshake};
pub use header::ContentHeader;
pub use method::{Arguments, Method, MethodError, MethodId};
pub use publish::{Publish, PublishScanner};
pub use reply::{Exception, ReplyCode};
pub use scan_ack::{Ack, scan_ack};
pub use scan_deliver::{Delivery, scan_deliver};
