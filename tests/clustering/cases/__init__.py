"""A family of cases a file."""
