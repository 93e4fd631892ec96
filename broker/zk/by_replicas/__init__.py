"""The designs without a controller: the replicas of a partition elect, and their leader governs."""
