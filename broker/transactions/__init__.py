"""Transactions: the coordinator of each transactional id, its rules and its log."""
