//! Tokens from an OAuth 2 server.
