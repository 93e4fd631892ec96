"""Scenarios as text: commands to a simulated quorum or cluster, and below each what came of it.

A scenario is a file that people read and the suite plays. `script` reads and writes the text,
`words` are the commands, `directed_quorum` and `directed_cluster` carry them out in the simulator,
and a story tells what changed. `performance` plays a script from its first line to its last.
"""
