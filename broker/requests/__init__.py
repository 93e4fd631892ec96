"""Consumer groups: who is in them, which generation they are in, and what they have committed."""
