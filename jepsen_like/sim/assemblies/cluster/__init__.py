"""A simulated cluster: controllers, brokers and clients, and what must hold of them.

cluster, nodes                    who is there: the assembly, and the processes in it
cluster_options                   what a run is like, drawn from its seed
cluster_run, liveness             the phases of a run, and what must be true at its end
cluster_faults                    what happens to a cluster, beside the faults of its quorum
acknowledged                      what clients and their judges agree on
clients                           who produces and reads, who changes topics, settings and groups
invariants                        what must hold after every event
"""
