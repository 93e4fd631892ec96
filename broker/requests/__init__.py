"""The requests that a broker serves: each is parsed, may wait, and gets one answer."""
