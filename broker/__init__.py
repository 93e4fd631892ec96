"""A broker: it keeps replicas of partitions, serves clients and belongs to a cluster."""
