"""A simulated ZooKeeper ensemble, and clients of it."""
