"""Chaos runs on virtual time: workloads, faults, histories and judges are those of real runs."""
