"""The options of `quorumlab chaos sim`, a table that `quorumlab.arguments.declare` reads.

Imports nothing of the simulator, which is slow to load.
"""

__all__ = ["ABOUT_SIM", "SIM_OPTIONS"]

ABOUT_SIM = (
    "Run the shipped cores on virtual time, with faults drawn from a seed, and check every"
    " invariant after every event. One seed has one run: what fails can be seen again. Without"
    " --cluster it is the metadata quorum alone. Exit codes: 0 nothing violated, 1 an exception"
    " in the simulator, 2 usage, 4 violated, 5 a sweep that proves nothing."
)
SIM_OPTIONS = """
    | --cluster  whole clusters: controllers, brokers, clients
    | --clients  judge the quorum only by what its clients see
    --having NAMES  with --cluster: what runs surely have: consumers, newer-metadata, …
    --first N [0]  of a sweep (default: 0)
    | --seed N  run this one seed (default: 0)
    | --sweep COUNT [int]  run COUNT seeds from --first on
    | --plants  list the bugs that can be planted
    | --catches  plant every bug, or those of --plant: each must be found within its bound
    --processes N [2]  of a sweep (default: 2)
    --plant NAME  run on rules with this bug
    --until-event E [int]  stop after event E
    --trace short|full  print events: those that changed a node, or all
    --format text|json [text]  default: text"""
