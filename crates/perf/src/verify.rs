//! Every message accounted for.
