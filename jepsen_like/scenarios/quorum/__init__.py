"""A quorum that is directed: its commands, its conditions, and what is told of it."""
