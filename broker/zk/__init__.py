"""Brokers of the ZooKeeper designs read and write nodes, and obey, instead of a metadata log."""
