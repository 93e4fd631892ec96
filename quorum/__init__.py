"""The replicated log and its consensus: the Raft of KIP-595 as a deterministic core."""
