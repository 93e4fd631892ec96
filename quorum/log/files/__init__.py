"""Logs, snapshots and small files on real disks, and what of them survives a crash."""
