"""A chaos run on real processes: clients, faults, samples, phases, and what it leaves behind."""
