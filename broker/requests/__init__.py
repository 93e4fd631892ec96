"""Each request that a broker serves is parsed, may wait, and gets one answer."""
