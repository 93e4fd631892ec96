"""Clusters of the older designs: brokers around a simulated ZooKeeper ensemble."""
