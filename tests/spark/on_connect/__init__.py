"""Tests that share a Spark Connect server."""
