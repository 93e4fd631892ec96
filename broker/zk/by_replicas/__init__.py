"""Without a controller, the replicas of a partition elect a leader, which governs."""
