//! Contents and bodies for members that lag behind the log, are new, or have lost something.

mod frame;

pub use frame::Bulk;
pub(super) use frame::read_header;
