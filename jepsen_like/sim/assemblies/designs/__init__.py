"""Brokers of the older designs, around a ZooKeeper ensemble."""
