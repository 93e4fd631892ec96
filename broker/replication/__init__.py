"""Followers fetch from the leaders of the partitions that are held here."""
