"""Assemblies: a quorum alone, a whole cluster, or an older design, each put into a world."""
