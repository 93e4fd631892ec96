"""Processes of Spark are killed, and no verdict changes. A package: tests here take minutes."""
