//! Why a command failed: a text for standard error, and one of the exit codes that RabbitMQ's tools use (BSD's sysexits).

/// The command line makes no sense.
pub const USAGE: u8 = 64;
/// A value is wrong, or what it names is not there.
pub const BAD_VALUE: u8 = 65;
/// There is no such user.
pub const NO_USER: u8 = 67;
/// The node can't be reached, or refuses.
pub const UNAVAILABLE: u8 = 69;
/// Something that exists already, or a defect.
pub const SOFTWARE: u8 = 70;
/// A file can't be written.
pub const CANNOT_WRITE: u8 = 73;
/// It took longer than permitted.
pub const TIMED_OUT: u8 = 75;

/// A failure as its user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What goes to standard error, without the end of the last line.
    pub text: String,
    /// The exit code.
    pub code: u8,
    /// The command's usage is to follow.
    pub with_usage: bool,
}

impl Failure {
    /// A text that stands for itself.
    pub fn plain(code: u8, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code,
            with_usage: false,
        }
    }

    /// A text under the word *Error*, as most are.
    pub fn error(code: u8, text: impl AsRef<str>) -> Self {
        Self::plain(code, format!("Error:\n{}", text.as_ref()))
    }

    /// What is wrong with the command line; its usage follows.
    pub fn usage(text: impl AsRef<str>) -> Self {
        Self::argument(USAGE, text)
    }

    /// An argument that has a wrong value; the usage follows.
    pub fn argument(code: u8, text: impl AsRef<str>) -> Self {
        Self {
            with_usage: true,
            ..Self::plain(code, format!("Error (argument validation): {}", text.as_ref()))
        }
    }

    /// The user that was named is not there.
    pub fn no_user(user: &str) -> Self {
        Self::error(NO_USER, format!("User \"{user}\" does not exist"))
    }
}
