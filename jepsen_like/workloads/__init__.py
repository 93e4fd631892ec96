"""What clients do while a cluster is broken: workloads on logs, on metadata, and their registry."""
