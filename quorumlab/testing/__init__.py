"""Clusters for tests of applications, with faults that prove they fired: for the pytest plugin."""
