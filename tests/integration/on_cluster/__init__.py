"""Tests that share a cluster and do not break it. A package: its end is the end of the cluster."""
