//! What a message looks like.
