"""The raftos library as a replication engine, for comparison with our own."""
