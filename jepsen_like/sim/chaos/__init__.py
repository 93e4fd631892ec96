"""Workloads and faults as on real processes, on virtual time: the same history, the same judge."""
