"""Running many seeds, and the command that does."""
