"""What nodes say in ZooKeeper and how: paths, payloads, and the narrow interface to a session."""
