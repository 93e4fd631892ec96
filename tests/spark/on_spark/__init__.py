"""Tests that share a Spark session. A package: its end is the end of the session."""
