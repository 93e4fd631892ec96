"""Quotas of clients: which limit holds for whom, what was used, and how long to wait."""
