"""All kinds of faults on a simulated cluster, under the names that they have on real processes."""

from collections.abc import Mapping

from jepsen_like.faults.cut_links import CUTS
from jepsen_like.faults.fault import Injector, cannot
from jepsen_like.faults.kinds import KINDS
from jepsen_like.faults.message_rules import MESSAGE_KINDS
from jepsen_like.sim.faults.virtual_network import NetworkFaults
from jepsen_like.sim.faults.virtual_processes import Disks, Processes
from jepsen_like.sim.world.assembly import AnyAssembly
from jepsen_like.sim.world.interception import Interception

__all__ = ["injectors"]

_NO_ZOOKEEPER = cannot("there is no ZooKeeper")


def injectors(site: AnyAssembly, interception: Interception) -> Mapping[str, Injector]:
    processes, disks = Processes(site), Disks(site)
    network = NetworkFaults(site, interception)
    return {
        **{kind: cannot(known.not_simulated) for kind, known in KINDS.items()},
        "kill": Injector(processes.kill),
        "stop": Injector(processes.stop),
        "pause": Injector(processes.pause),
        "resign": Injector(processes.resign),
        "rolling-restart": Injector(processes.restart_all),
        "power-loss": Injector(processes.cut_power),
        "torn-write": Injector(processes.tear),
        "bit-flip": Injector(processes.flip),
        "wipe": Injector(processes.wipe),
        "clock-jump": Injector(processes.jump),
        "fsync-error": Injector(disks.fail_syncs),
        "slow-disk": Injector(disks.slow_down),
        **dict.fromkeys(CUTS, Injector(network.cut)),
        "delay": Injector(network.delay),
        "reset": Injector(network.lose),
        # Above TCP, a packet that was lost is a message that comes late.
        "netns-loss": Injector(network.delay),
        **dict.fromkeys(MESSAGE_KINDS, Injector(network.apply_rules)),
        **dict.fromkeys(("kill-zookeeper", "cut-zookeeper"), _NO_ZOOKEEPER),
        **site.injectors,
    }
