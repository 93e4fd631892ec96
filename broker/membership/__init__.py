"""A broker belongs to a cluster: registration, heartbeats, the metadata log, AlterPartition."""
