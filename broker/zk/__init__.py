"""Brokers of the ZooKeeper designs read nodes and obey commands; there is no metadata log."""
