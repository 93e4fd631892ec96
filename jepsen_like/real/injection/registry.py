"""All kinds of faults on a local cluster, by name.

    with prepared(cluster, kinds):  # before the nodes start; undone when they have ended
        cluster.start_all()
        known = injectors(cluster, mesh)
        known["pause"].inject(fault, nodes)

What this machine cannot do says why: `known[kind].why_not()`.
"""

from jepsen_like.faults import Injector
from jepsen_like.real.injection.messages import on_messages
from jepsen_like.real.injection.network import on_flows
from jepsen_like.real.injection.processes import Kill, Pause, RollingRestart, Stop
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh

__all__ = ["injectors"]


def injectors(cluster: LocalCluster, mesh: ProxyMesh | None) -> dict[str, Injector]:
    """`mesh`: the proxies between the nodes, if there are any."""
    return {
        "kill": Kill(cluster),
        "stop": Stop(cluster),
        "pause": Pause(cluster),
        "rolling-restart": RollingRestart(cluster),
        **on_flows(cluster.layout, mesh),
        **on_messages(cluster.layout, mesh),
    }
