"""Runs the real broker binary and the client suites that drive it."""
