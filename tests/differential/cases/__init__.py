"""The cases, one file a family."""
