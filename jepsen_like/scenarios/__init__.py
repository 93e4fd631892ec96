"""Scenarios as text: commands to a simulated quorum or cluster, and below each what came of it.

A scenario is a file that people read and the suite plays. `script` reads and writes the text, the
`*_forms` and `*_conditions` modules are the commands, `directed_quorum`, `directed_cluster` and
`directed_zookeeper` carry them out in the simulator, and the `*_story` modules tell what changed.
`performance` plays a script from its first line to its last.

A schedule is such a text without the output. It brings one broken rule to light (`schedules`).
"""
