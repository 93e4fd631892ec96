"""A page that shows a history: lanes, faults, what broke, and how the cluster kept up.

    history -> bars, bands, series -> sampling -> document (plain values) -> page (one HTML string)

Pure: whoever wants a file writes the string. Nothing here judges; the verdict is given.
"""
