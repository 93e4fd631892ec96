"""A cluster in ZooKeeper mode that is directed: its commands, and what is promised there."""
