"""How a text is written: its lines, and the form of a command."""
