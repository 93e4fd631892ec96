"""Raft as Kafka has it: elections, replication, snapshots, voters; one deterministic core."""
