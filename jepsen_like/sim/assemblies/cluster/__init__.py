"""A simulated cluster: controllers, brokers and clients, and what must hold of them.

cluster, nodes                    who is there: the assembly, and the processes in it
cluster_options                   what a run is like, drawn from its seed
cluster_run, liveness             the phases of a run, and what must be true at its end
cluster_faults                    what happens to a cluster, beside the faults of its quorum
client, pipelined_client          who produces and reads
operators, cluster_administrator  who changes topics, settings, replicas and groups
*_invariants, metadata_answers    what must hold after every event
watched                           what the invariants know of a partition
"""
