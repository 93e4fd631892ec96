"""Tests of stores that only Spark reads. A package: its end is the end of the servers."""
