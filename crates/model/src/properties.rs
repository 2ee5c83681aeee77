//! The basic class's properties: read lazily from the bytes of a content header.
