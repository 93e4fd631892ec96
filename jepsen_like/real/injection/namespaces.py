"""A network of its own for a cluster: a namespace for each node, a cable from each to one switch.

    node 1 (198.18.7.1) --port-1--+
    node 2 (198.18.7.2) --port-2--+-- switch --here-- this machine (198.18.7.254)

The switch is a bridge in a namespace too, so that nothing of this machine's own network is touched
but one interface that comes and goes. Packets are dropped where they enter the switch: nobody is
told, as on a cable. Needs root; `why_no_namespaces` says what is missing.

Source: Linux, ip-netns(8) and nft(8), the ingress hook of the netdev family.
"""

import functools
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from jepsen_like.faults.cut_links import Direction
from jepsen_like.faults.participants import CLIENTS
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.processes import run

__all__ = ["Switch", "free_network", "why_no_namespaces"]

_TOOLS = ("ip", "nft", "nsenter")
_NAMESPACES = Path("/run/netns")
_NETWORKS = "198.18"  # half of what RFC 2544 keeps for tests of networks
_HERE = 254
_ALL_PERCENT = 100


@functools.cache
def why_no_namespaces() -> str:
    """Tried once: a container may lack the rights, a kernel the hook."""
    if os.geteuid() != 0:
        return "needs root, to make a network namespace for each node"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    name = f"quorumlab-try-{os.getpid()}"
    try:
        _try(name)
    except ClusterError as error:
        return f"no network namespaces here: {error}"
    finally:
        _forget(name)
    return ""


def _try(name: str) -> None:
    run(["ip", "netns", "add", name])
    run(["ip", "-n", name, "link", "add", "name", "switch", "type", "bridge"])
    run(["ip", "-n", name, "link", "add", "name", _port_of(1), "type", "veth"])
    run(
        ["ip", "netns", "exec", name, "nft", "-f", "-"], told=_table("try", {_port_of(1): ["drop"]})
    )


def _forget(name: str) -> None:
    if (_NAMESPACES / name).exists():
        run(["ip", "netns", "del", name])


def free_network() -> str:
    """The first three numbers of addresses that no other cluster has now."""
    numbers = sorted(range(256), key=lambda _: secrets.randbits(32))
    for number in numbers:
        network = f"{_NETWORKS}.{number}"
        if not (_NAMESPACES / _switch_of(network)).exists():
            return network
    raise ClusterError(f"every network of {_NETWORKS}.0.0/16 is taken: see `ip netns list`")


def _switch_of(network: str) -> str:
    return f"quorumlab-{network}"


def _port_of(node_id: int) -> str:
    """The name of the switch's interface."""
    return f"port-{node_id}"


class Switch:
    """The switch of a layout with a network: made before the nodes start, removed once they end."""

    def __init__(self, layout: ClusterLayout) -> None:
        assert layout.network, layout.directory
        self._layout = layout
        self._name = _switch_of(layout.network)
        self._interface = f"ql-{layout.network}"  # of this machine; at most 15 characters
        self._droppings = 0

    def make(self) -> None:
        # If another cluster has taken the name meanwhile, this one fails before it begins.
        run(["ip", "netns", "add", self._name])
        try:
            self._build()
        except BaseException:
            self.remove()
            raise

    def _build(self) -> None:
        self._configure(self._name, "link add name switch type bridge", "link set dev switch up")
        end = ["link", "add", "name", self._interface, "type", "veth", "peer", "name", "here"]
        run(["ip", *end, "netns", self._name])
        run(["ip", "address", "add", f"{self._address(_HERE)}/24", "dev", self._interface])
        run(["ip", "link", "set", "dev", self._interface, "up"])
        self._plug_in("here")
        for place, node in enumerate(self._layout.nodes, 1):
            inside, port = self._inside(node.id), _port_of(node.id)
            run(["ip", "netns", "add", inside])
            self._configure(
                self._name, f"link add name {port} type veth peer name cable netns {inside}"
            )
            self._plug_in(port)
            assert node.host == self._address(place), node
            self._configure(
                inside,
                f"address add {node.host}/24 dev cable",
                "link set dev cable up",
                "link set dev lo up",
            )

    def remove(self) -> None:
        """Whatever of it is there."""
        if Path("/sys/class/net", self._interface).exists():
            run(["ip", "link", "del", "dev", self._interface])
        for node in self._layout.nodes:
            _forget(self._inside(node.id))
        _forget(self._name)

    def entrance(self, node_id: int) -> Sequence[str]:
        """The prefix of a command that runs inside. Only the network differs there."""
        return ("nsenter", f"--net={_NAMESPACES / self._inside(node_id)}", "--")

    def drop(self, directions: Sequence[Direction], *, percent: int = _ALL_PERCENT) -> str:
        """So many of the packets in these directions get lost until the table of rules is lifted.

        Of what goes between nodes and clients only the clients' own: runs are watched by HTTP.
        """
        self._droppings += 1
        table = f"dropping-{self._droppings}"
        chance = "" if percent == _ALL_PERCENT else f"numgen random mod 100 < {percent} "
        chains = {
            port: [f"{which} {chance}counter drop" for _, which in rules]
            for port, rules in groupby(sorted(self._rules(directions)), key=lambda rule: rule[0])
        }
        self._nft("-f", "-", told=_table(table, chains))
        return table

    def lift(self, table: str) -> int:
        """How many packets the rules of the table have dropped."""
        listed = json.loads(self._nft("-j", "list", "table", "netdev", table))["nftables"]
        parts = (part for each in listed if "rule" in each for part in each["rule"]["expr"])
        dropped: int = sum(part["counter"]["packets"] for part in parts if "counter" in part)
        self._nft("delete", "table", "netdev", table)
        return dropped

    def _rules(self, directions: Sequence[Direction]) -> Iterator[tuple[str, str]]:
        """The port where a packet enters, and what it looks like."""
        here = self._address(_HERE)
        brokers = {node.id for node in self._layout.brokers}
        for source, target in directions:
            if source == CLIENTS:
                node = self._layout.node(target)
                if target in brokers:
                    yield "here", f"ip daddr {node.host} tcp dport {node.port}"
            elif target == CLIENTS:
                if source in brokers:
                    port = self._layout.node(source).port
                    yield _port_of(source), f"ip daddr {here} tcp sport {port}"
            else:
                yield _port_of(source), f"ip daddr {self._layout.node(target).host}"

    def _address(self, last: int) -> str:
        return f"{self._layout.network}.{last}"

    def _inside(self, node_id: int) -> str:
        return f"{self._name}-{node_id}"

    def _plug_in(self, port: str) -> None:
        up = f"link set dev {port} up"
        self._configure(self._name, f"link set dev {port} master switch", up)

    def _configure(self, namespace: str, *commands: str) -> None:
        run(["ip", "-n", namespace, "-batch", "-"], told="\n".join(commands))

    def _nft(self, *arguments: str, told: str = "") -> str:
        return run(["ip", "netns", "exec", self._name, "nft", *arguments], told=told)


def _table(name: str, chains: Mapping[str, Sequence[str]]) -> str:
    """Rules for what comes in at ports, in nft's language."""
    lines = [f"table netdev {name} {{"]
    for port, rules in chains.items():
        lines += [
            f"chain {port} {{",
            f'type filter hook ingress device "{port}" priority 0',
            *rules,
            "}",
        ]
    return "\n".join([*lines, "}", ""])
