"""The injectors of a simulated cluster: a file for each family of faults, as on real processes."""
