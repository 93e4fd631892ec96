"""What clients do while a cluster is broken: one file a workload, and a registry of them."""
