"""The language of nodes in ZooKeeper: paths, payloads, and the narrow interface to a session."""
