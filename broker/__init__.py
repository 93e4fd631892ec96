"""A broker keeps replicas of partitions, serves clients and belongs to a cluster."""
