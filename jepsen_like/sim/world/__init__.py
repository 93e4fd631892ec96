"""The world: its nodes, the network between them, and the observers of both."""
