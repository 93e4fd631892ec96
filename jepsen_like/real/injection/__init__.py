"""Injectors of faults on a local cluster: a file for each family of faults."""
