"""The world: nodes, their network, and who observes them."""
