"""Who asks nodes of a quorum, and who changes its voters."""
