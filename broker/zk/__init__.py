"""Brokers of the ZooKeeper designs: what they read, write and obey instead of a metadata log."""
