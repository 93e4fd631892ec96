"""The command that runs one seed or many, and the worker processes that it uses."""
