"""Scenarios as text: commands to a simulated quorum or cluster, and below each what came of it.

A scenario is a file that people read and the suite plays: 01 to 33, in the order in which they
teach. A schedule, in `schedules/`, is such a text without the output: it brings a broken rule to
light.

`language`     how a text is written, and what a command looks like
`stage`        what every play has: machines, links, messages, names, an account, a story
`quorum`, `cluster`, `zookeeper`   what can be directed, with its commands and conditions
`settings`     how a text begins
`schedules`    all that a text may say; finds the schedules, and carries their commands out
`performance`  plays a text from its first line to its last
"""
