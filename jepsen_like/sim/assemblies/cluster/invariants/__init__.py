"""What must hold of a cluster after every event, and what the rules know of a partition."""
