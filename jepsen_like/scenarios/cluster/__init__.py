"""A cluster that is directed: its clients, commands and conditions, and what is told of it."""
