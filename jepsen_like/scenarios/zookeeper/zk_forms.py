"""Commands and conditions of a cluster in ZooKeeper mode.

What has no topic named is of the topic that counts, orders.
"""

from jepsen_like.scenarios.cluster.cluster_conditions import PARTITION_CONDITIONS
from jepsen_like.scenarios.cluster.cluster_forms import PARTITION_FORMS
from jepsen_like.scenarios.language.forms import Forms
from jepsen_like.scenarios.stage import directed_forms
from jepsen_like.scenarios.zookeeper.directed_zookeeper import DirectedZooKeeper
from jepsen_like.scenarios.zookeeper.zk_promises import Design
from wire.zk import paths
from wire.zk.session import Delete, GetData, Operation

__all__ = ["CONDITIONS", "FORMS"]

FORMS = Forms(directed_forms.FORMS, PARTITION_FORMS, around=directed_forms.AROUND)
CONDITIONS = Forms(PARTITION_CONDITIONS)


FORMS.add_name("the leader among NODES", Design.leader_among, of_node=True)
FORMS.add_name("a broker that is not the controller", Design.not_the_controller, of_node=True)
FORMS.add_name("the candidacies of NODES", DirectedZooKeeper.candidacies)
FORMS.add("delete VALUE", Design.delete)
FORMS.add("cut NODE from ZooKeeper", Design.cut_session)
FORMS.add("heal NODE to ZooKeeper", Design.heal_session)
FORMS.add("begin to stop NODE", DirectedZooKeeper.stop)
CONDITIONS.add("NODE leads", Design.leads)
CONDITIONS.add(
    "NODE leads VALUE", Design.leads, "this node takes itself for the leader of that topic"
)
CONDITIONS.add("NODE is registered", DirectedZooKeeper.is_registered)


# --- topics ---------------------------------------------------------------------------------


@FORMS.form(
    "create VALUE on NODES", "a topic of one partition; where there is a controller the first leads"
)
def create(design: Design, value: str, nodes: list[int]) -> None:
    design.create(*nodes, topic=value)


@FORMS.form("NAMES = the replicas of VALUE on NODES", "create it there, and name its leader first")
def the_replicas(design: Design, names: list[str], value: str, nodes: list[int]) -> None:
    design.names.name(names, design.create(*nodes, topic=value))


# --- ZooKeeper ------------------------------------------------------------------------------


@FORMS.form("delete the node of the controller", "an administrator ends its epoch")
def depose(zookeeper: DirectedZooKeeper) -> None:
    zookeeper.ask_zookeeper(Delete(path=paths.CONTROLLER))


@FORMS.form("pause NODE when it looks who lives", "it has asked what each broker has registered")
def pause_at(zookeeper: DirectedZooKeeper, node: int) -> None:
    def looks(operation: Operation) -> bool:
        return isinstance(operation, GetData) and paths.parent(operation.path) == paths.BROKER_IDS

    what = "the controller knows who is gone, and asks for what the others have registered"
    zookeeper.pause_at(node, looks, what)


# --- elections by the replicas themselves -----------------------------------------------------


@FORMS.form("fewer than all of NODES must have stood since OFFSET", "candidacies (Z-HERD)")
def must_not_all_stand(zookeeper: DirectedZooKeeper, nodes: list[int], offset: int) -> None:
    candidates = zookeeper.candidacies(nodes) - offset
    zookeeper.note(f"{candidates} have stood")
    told = f"{candidates} of {len(nodes)} replicas stood for one partition"
    zookeeper.must(candidates < len(nodes), "Z-HERD", told)


# --- conditions -----------------------------------------------------------------------------


@CONDITIONS.form("one of NODES leads", "takes itself for the leader")
def one_leads(design: Design, nodes: list[int]) -> bool:
    return any(design.leads(node) for node in nodes)


@CONDITIONS.form("another controller than NODE is active", "by the node of the controller")
def is_another_active(design: Design, node: int) -> bool:
    return design.controller not in (None, node)


@CONDITIONS.form("NAMES are gone", "these topics")
def are_gone(design: Design, names: list[str]) -> bool:
    return not any(map(design.has_topic, names))


@CONDITIONS.form("no broker tells clients that NODE is in sync", "in what it tells of the ISR")
def is_told_by_none(design: Design, node: int) -> bool:
    return all(node not in isr for isr in design.told_isrs())
