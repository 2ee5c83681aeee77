//! What a backend says about somebody whose password is good.

/// They are let in. What is kept for a while is this, so it holds no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// Their tags.
    pub tags: Vec<String>,
    /// Their name in a directory, if it was one that let them in.
    pub known_as: Option<String>,
}

impl From<Vec<String>> for Admitted {
    fn from(tags: Vec<String>) -> Self {
        let known_as = None;
        Self { tags, known_as }
    }
}
