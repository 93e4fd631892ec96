"""Tests that share a Spark Connect server. A package: its end is the end of the server."""
