"""Partitions: logs, leaders and followers, in-sync replicas, and what clients are told."""
