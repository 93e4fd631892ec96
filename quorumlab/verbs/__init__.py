"""One module a verb of the command line: its options, and what it prints."""
