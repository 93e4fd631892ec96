"""What a core is: events, effects, tokens, and the seam between an engine and applications."""
