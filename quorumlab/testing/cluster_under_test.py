"""The cluster that tests get: where it listens, its topics, and the faults of one test.

A fault is in force from its call until it is healed: by leaving its `with` block, by `heal()`, or
at the end of the test. What was asked for and never happened is told by `finish`, and fails the
test: a test that passes without its fault proves nothing.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from jepsen_like.faults.fault import Course, Fault, InForce, Proof, in_force
from jepsen_like.faults.message_rules import Action, FrameRule, api_key_of
from jepsen_like.installation import command
from jepsen_like.real.injection.network_faults import groups_of, impair_flows
from jepsen_like.real.kafka_client import Client, refusal
from jepsen_like.real.layout import ClusterError, NodeLayout
from jepsen_like.real.pages import ask
from jepsen_like.real.processes import await_value
from quorumlab.testing.injected_errors import ErrorRule, InjectedErrors
from quorumlab.testing.started_nodes import InProcessNodes, Nodes, ProcessNodes, Wanted
from wire.errors import ErrorCode
from wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

__all__ = ["ClusterUnderTest", "FaultUnderTest", "Partition"]

Seen = TypeVar("Seen")
_LOOK_SECONDS = 10.0
KINDS: Mapping[str, Callable[[Wanted], Nodes]] = {
    "processes": ProcessNodes,
    "in-process": InProcessNodes,
}


class FaultUnderTest:
    """A fault in force on `nodes`."""

    def __init__(self, name: str, in_force: InForce, healed: Callable[[], None]) -> None:
        self.name = name
        self.nodes = in_force.nodes
        self._in_force: InForce | None = in_force
        self._healed = healed
        self._proof: Proof | None = None

    def heal(self) -> None:
        """End it, start again what it killed, and wait until the cluster is ready."""
        in_force, self._in_force = self._in_force, None
        if in_force is not None:
            in_force.heal()
            self._proof = in_force.proof()
            self._healed()

    def unproven(self) -> str | None:
        """Why nothing shows that it was in force; None if something does."""
        if self._proof is None or self._proof.bit:
            return None
        return f"{self.name} never fired ({self._proof.evidence})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()


class Partition:
    """A partition as the active controller sees it. `leader` is None if it has none."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.leader: int | None = row["leader"] if row["leader"] >= 0 else None
        self.replicas: tuple[int, ...] = tuple(row["replicas"])
        self.isr: tuple[int, ...] = tuple(row["isr"])


class ClusterUnderTest:
    """Entering it starts all nodes and waits until they are ready; leaving it ends them.

    Faults reach only nodes that it has started itself. Raises ClusterError if it cannot start.
    """

    def __init__(
        self,
        directory: Path,
        *,
        mode: str = "processes",
        controllers: int = 3,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.mode = mode
        self._errors = InjectedErrors()
        self._faults: list[FaultUnderTest] = []
        wanted = Wanted(
            directory=directory,
            controllers=controllers,
            brokers=brokers,
            settings=settings or {},
            tamper=self._errors,
        )
        self._nodes = KINDS[mode](wanted)

    def __enter__(self) -> Self:
        self._nodes.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._nodes.__exit__()

    # --- what it is ---------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT`, several with commas between them."""
        return self._nodes.layout.bootstrap_servers

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(node.id for node in self._nodes.layout.brokers)

    @property
    def controllers(self) -> tuple[int, ...]:
        """The ids of all controllers."""
        return tuple(node.id for node in self._nodes.layout.controllers)

    def active_controller(self) -> int:
        """The id of the controller that leads the quorum. Raises ClusterError if none does."""
        return self._await(self._find_controller, "no controller leads the quorum")

    def partition(self, topic: str, partition: int = 0) -> Partition:
        """Raises ClusterError if there is no such partition."""
        rows = self._await(partial(self._rows, topic), f"no topic {topic!r}")
        for row in rows:
            if row["partition"] == partition:
                return Partition(row)
        raise ClusterError(f"topic {topic!r} has no partition {partition}")

    def create_topic(
        self, name: str, *, partitions: int = 1, replication_factor: int | None = None
    ) -> None:
        """Create a topic, and wait until every broker knows the leaders of its partitions.

        It has three replicas by default, or as many as there are brokers. Raises ClusterError.
        """
        new = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replication_factor or -1
        )
        addresses = [(node.host, node.port) for node in self._nodes.layout.brokers]
        with Client(addresses) as client:
            answer = client.ask(
                CreateTopicsRequest(topics=(new,), timeout_ms=10_000), CreateTopicsResponse
            )
        outcome = answer.topics[0]
        if outcome.error_code is not ErrorCode.NONE:
            raise ClusterError(refusal(outcome.error_code, outcome.error_message))
        known = partial(self._is_known, name)
        self._await(known, f"topic {name!r} is not known to every broker")

    # --- faults -------------------------------------------------------------------------

    def inject(self, error: str, *, api: str, topic: str | None = None) -> ErrorRule:
        """Prepare an error for clients; `.once()`, `.times(n)` or `.always()` puts it into force.

        `error` and `api` are Kafka's names; without a topic it is an error of any. Raises
        CannotInject, a ValueError, for names that are unknown.
        """
        return self._errors.add(error, api, topic)

    def kill_controller(self) -> FaultUnderTest:
        """Kill the active controller, which is started again when the fault heals."""
        active = self.active_controller()
        return self._in_force(f"kill_controller() of {active}", self._nodes.kill([active]))

    def kill(self, broker: int) -> FaultUnderTest:
        """Kill a broker, which is started again when the fault heals."""
        self._refuse_stranger(broker)
        return self._in_force(f"kill({broker})", self._nodes.kill([broker]))

    def pause(self, broker: int) -> FaultUnderTest:
        """Stop a broker as SIGSTOP does: its connections stay, and it says nothing."""
        self._refuse_stranger(broker)
        return self._in_force(f"pause({broker})", self._nodes.pause([broker]))

    def isolate(self, broker: int, *, clients: bool = False) -> FaultUnderTest:
        """Cut a broker off from all other nodes; from clients too, if `clients`.

        Clients that reach it are told of a leader that commits nothing, until they time out.
        """
        self._refuse_stranger(broker)
        layout = self._nodes.layout
        fault = Fault(kind="partition", parameters={"clients": clients})
        cut = impair_flows(groups_of(layout), self._nodes.mesh, fault, [broker])
        return self._in_force(f"isolate({broker})", cut)

    def lag_follower(
        self, topic: str, partition: int = 0, *, broker: int | None = None
    ) -> FaultUnderTest:
        """Hold the fetches of one follower at the leader of a partition, the last of its ISR.

        It falls behind in every partition that this leader has, and leaves the ISR after
        `replica.lag.time.max.ms` (3000). `nodes` of the fault has its id. Raises ClusterError if
        there is no such follower.
        """
        at = self.partition(topic, partition)
        followers = [each for each in at.isr if each != at.leader]
        if at.leader is None or not followers or broker not in (None, *followers):
            raise ClusterError(
                f"{topic}-{partition} has no such follower: leader {at.leader}, ISR {at.isr}"
            )
        follower = followers[-1] if broker is None else broker
        held = self._hold_fetches(follower, at.leader)
        return self._in_force(f"lag_follower({topic!r}, {partition})", held)

    @in_force
    def _hold_fetches(self, follower: int, leader: int) -> Course:
        mesh = self._nodes.mesh
        rule = FrameRule(
            action=Action.HOLD,
            source=follower,
            target=leader,
            api_key=api_key_of("fetch"),
            is_request=True,
        )
        armed = mesh.arm(rule)
        yield [follower]
        mesh.release(armed)
        return Proof(bit=armed.fired > 0, evidence=f"{armed.fired} fetches were held")

    # --- the end of a test --------------------------------------------------------------

    def finish(self) -> list[str]:
        """Heal everything; a sentence for each fault that never fired, or node that ended."""
        rules, faults, self._faults = self._errors.clear(), self._faults, []
        complaints = []
        for fault in reversed(faults):
            try:
                fault.heal()
            except (ClusterError, OSError, TimeoutError) as error:
                complaints.append(f"{fault.name} did not heal: {error}")
        told = [rule.unproven() for rule in rules] + [fault.unproven() for fault in faults]
        return complaints + [each for each in told if each is not None] + self._nodes.ended()

    def describe(self) -> str:
        """Where its data is, and the commands that look into it."""
        controller = self._nodes.layout.controllers[0]
        kept = f"data and logs kept in {self.directory} ({self.mode})"
        return f"{kept}\n{command('inspect', controller.data)}"

    # --- looking ------------------------------------------------------------------------

    def _in_force(self, name: str, fault: InForce) -> FaultUnderTest:
        made = FaultUnderTest(name, fault, self._nodes.wait_ready)
        self._faults.append(made)
        return made

    def _refuse_stranger(self, broker: int) -> None:
        if broker not in self.brokers:
            raise ClusterError(f"no broker {broker}: this cluster has {self.brokers}")

    def _await(self, look: Callable[[], Seen | None], otherwise: str) -> Seen:
        seen = await_value(look, _LOOK_SECONDS)
        if not seen:
            raise ClusterError(f"{otherwise} (looked for {_LOOK_SECONDS:.0f} s)")
        return seen

    def _page(self, node: NodeLayout, path: str) -> Any:
        answered = ask((node.host, node.http_port), path, timeout_seconds=0.5)
        return answered.page if answered.status == 200 else None

    def _find_controller(self) -> int | None:
        """The node that says that it leads the newest epoch of which any tells."""
        pages = {node.id: self._page(node, "/v1/node") for node in self._nodes.layout.controllers}
        quorums = {node_id: page["quorum"] for node_id, page in pages.items() if page}
        newest = max((each["epoch"] for each in quorums.values()), default=-1)
        leaders = (
            node_id
            for node_id, each in quorums.items()
            if each["epoch"] == newest and each["role"] == "leader"
        )
        return next(leaders, None)

    def _rows(self, topic: str) -> list[Mapping[str, Any]] | None:
        active = self._find_controller()
        if active is None:
            return None
        page = self._page(self._nodes.layout.node(active), f"/v1/topics/{topic}")
        return page["partitions"] if page else None

    def _is_known(self, topic: str) -> bool:
        pages = [self._page(node, f"/v1/topics/{topic}") for node in self._nodes.layout.brokers]
        return all(page and all(row["leader"] >= 0 for row in page["partitions"]) for page in pages)
