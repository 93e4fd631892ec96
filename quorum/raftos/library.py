"""The raftos library on today's Python: its own classes, with the few replaced that cannot work.

raftos 0.2.6 is of 2017. Replaced by subclasses or beside it, never in its files:

    - asyncio, where it asks for what Python has dropped since (`loop=` of a queue, an exception's
      old place);
    - the serializer: its default reads msgpack with an argument that msgpack has dropped, and cuts
      its binary log at every newline; raftos' own JSON serializer is used;
    - the encryption: none, whether or not `cryptography` is installed. Datagrams are as open as
      everything between controllers;
    - the state machine: instead of a file that is written anew for every command, we are told;
    - the cutting of the log, which opened its file once for every entry that stays, and the reading
      of all of it after every fifth entry. What is cut, and when, is raftos' affair;
    - what a leader may commit: raftos commits nothing behind an entry of an earlier term, ever;
    - how often a leader sends: raftos drowns a follower that is behind.

It tells its leader only who asks, and one future serves all that is proposed: so changes of leader
are noticed here, and what is committed is applied at once, where raftos waits for its next message.

Kept, since it is what raftos is: when it votes, forgets votes, and that it syncs nothing. Its state
is class-level, and its configuration a module's: one node in a process.
"""

import asyncio
import inspect
import logging
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import raftos.server
import raftos.state
from raftos.cryptors import DummyCryptor
from raftos.serializers import JSONSerializer
from raftos.storage import Log

from quorum.raftos.commands import Command
from quorum.raftos.engines import ONLY_IN_PROCESSES
from quorum.raftos.raftos_effects import Broken, Committed, News, RaftosRequest, TermAndLeader

__all__ = ["Address", "RaftosLibrary", "Timing"]

Address = tuple[str, int]
Hear = Callable[[News], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A leader that hears no majority for `step_down_ms` gives up, and about then others stand."""

    step_down_ms: int
    election_spread_ms: int  # how much later than that a follower may stand

    @property
    def settings(self) -> Mapping[str, float]:
        missed = 5  # heartbeats, raftos' default
        return {
            "step_down_missed_heartbeats": missed,
            "heartbeat_interval": self.step_down_ms / missed / 1000,
            "election_interval_spread": 1 + self.election_spread_ms / self.step_down_ms,
        }


class RaftosLibrary:
    """This process's node. `hear` is called on the event loop and must not call back."""

    def __init__(
        self,
        addresses: Mapping[int, Address],
        *,
        node_id: int,
        directory: Path,
        timing: Timing,
        hear: Hear,
    ) -> None:
        """Raises ValueError for a log that cannot be read. Needs a running loop."""
        if raftos.server.Node.nodes:
            raise ValueError(ONLY_IN_PROCESSES)
        _adapt(directory, timing)
        self._hear = hear
        self._ids = {f"{host}:{port}": each for each, (host, port) in addresses.items()}
        self._known: TermAndLeader | None = None  # what was told last
        own = addresses[node_id]
        self._node = _Node(address=own, loop=asyncio.get_running_loop())
        self._node.heard = self._look
        self._node.state.changed = self._look
        self._node.state.state_machine.hear = self._applied
        self._replayed = len(self._node.state.log)
        for address in addresses.values():
            if address != own:
                self._node.update_cluster(address)

    async def start(self) -> None:
        """Raises OSError if the address cannot be had."""
        await self._node.start()

    async def close(self) -> None:
        self._node.stop()

    def ask(self, request: RaftosRequest) -> None:
        state = self._node.state
        leader = state.state
        if not isinstance(leader, raftos.state.Leader) or state.storage.term != request.term:
            return
        if request.command is None:
            state.to_follower()
            return
        proposing = leader.execute_command(request.command.as_json())
        try:
            proposing.send(None)  # writes the entry and sends it; what it would wait for is no use:
        except OSError as error:  # the future wakes for whatever entry is applied next
            self._hear(Broken(reason=f"raftos cannot write its log: {error}"))
        finally:
            proposing.close()

    def _look(self) -> None:
        """Is there another term, or another leader?"""
        state = self._node.state
        term = state.storage.term
        led_term, leader = state.led
        leader_id = self._ids.get(leader) if led_term == term else None
        is_candidate = isinstance(state.state, raftos.state.Candidate)
        now = TermAndLeader(term=term, leader_id=leader_id, is_candidate=is_candidate)
        if now != self._known:
            self._known = now
            self._hear(now)

    def _applied(self, said: Mapping[str, Any]) -> None:
        log = self._node.state.log
        index = log.last_applied + 1
        self._hear(
            Committed(
                term=log[index]["term"],
                command=Command.of_json(said),
                is_replayed=index <= self._replayed,
            )
        )


# --- what is replaced ---------------------------------------------------------------------------


class _Asyncio:
    """asyncio as raftos knows it."""

    futures = SimpleNamespace(InvalidStateError=asyncio.InvalidStateError)
    iscoroutinefunction = staticmethod(inspect.iscoroutinefunction)  # asyncio's is on its way out

    @staticmethod
    def Queue(*, loop: object) -> "asyncio.Queue[Any]":
        del loop  # the running one
        return asyncio.Queue()

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)


class _Log(Log):  # type: ignore[misc]  # raftos has no types
    UPDATE_CACHE_EVERY = sys.maxsize  # nobody else writes the file

    def erase_from(self, index: int) -> None:
        gone = self.cache[index - 1 :]
        size = sum(len(self.serializer.pack(entry)) + 1 for entry in gone)
        os.truncate(self.filename, os.path.getsize(self.filename) - size)
        del self.cache[index - 1 :]


class _Leader(raftos.state.Leader):  # type: ignore[misc]  # raftos has no types
    """Commits what it may, and has one message at a time under way to a follower.

    raftos sends a follower that is behind one more for every new entry and for every answer. They
    breed: each is answered, each makes the follower cut its log and write the same entry again.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._sent_at: dict[str, float] = {}  # to whom, and not answered since

    async def append_entries(self, destination: str | None = None) -> None:
        now = self.loop.time()
        for follower in [destination] if destination else self.state.cluster:
            # What is lost goes out again with the next heartbeat.
            if now - self._sent_at.get(follower, -math.inf) >= 0.9 * self.heartbeat_timer.interval:
                self._sent_at[follower] = now
                await super().append_entries(follower)

    def on_receive_append_entries_response(self, data: Mapping[str, Any]) -> None:
        self._sent_at.pop(self.state.get_sender_id(data["sender"]), None)
        super().on_receive_append_entries_response(data)

    def update_commit_index(self) -> None:
        """An entry of the leader's own term commits all before it (thesis 3.6.2).

        raftos' own stops at the first entry of an earlier term, and never gets past it: a quorum
        that restarts, or whose leader dies with an entry under way, commits nothing any more.
        """
        log = self.log
        for index in range(log.last_log_index, log.commit_index, -1):
            if log[index]["term"] != self.storage.term:
                return
            matched = sum(match >= index for match in log.match_index.values())
            if self.state.is_majority(matched + 1):
                log.commit_index = index
                return


class _Applied:
    """In the place of raftos' state machine: every command that is committed, once and in order."""

    def __init__(self, node_id: str) -> None:
        self.hear: Callable[[Mapping[str, Any]], None]

    def apply(self, command: Mapping[str, Any]) -> None:
        self.hear(command)


class _State(raftos.state.State):  # type: ignore[misc]  # raftos has no types
    """Says when it has noticed a leader, or lost one, and in which term."""

    changed: Callable[[], None]
    led: tuple[int, str | None] = (-1, None)

    def set_leader(self, leader: object) -> None:
        super().set_leader(leader)
        self.led = (self.storage.term, self.get_leader())
        self.changed()


_apply_committed = raftos.state.validate_commit_index(lambda role: None)


class _Node(raftos.server.Node):  # type: ignore[misc]  # raftos has no types
    heard: Callable[[], None]

    def request_handler(self, data: Mapping[str, Any]) -> None:
        """A refusal of a later term makes raftos raise KeyError, after it has stepped down."""
        try:
            super().request_handler(data)
            _apply_committed(self.state.state)
        except LookupError as error:
            logging.getLogger(__name__).info("raftos failed on %s: %r", data.get("type"), error)
        self.heard()

    async def send(self, data: Mapping[str, Any], destination: object) -> None:
        """Nothing after the end: raftos' sender would fail on a socket that is gone."""
        if not self.transport.is_closing():
            await super().send(data, destination)


def _adapt(directory: Path, timing: Timing) -> None:
    # It reports every datagram to a node that is down.
    logging.getLogger("raftos").setLevel(logging.CRITICAL)
    raftos.server.asyncio = raftos.state.asyncio = _Asyncio()
    raftos.server.State = _State
    raftos.state.Leader = _Leader
    raftos.state.Log = _Log
    raftos.state.StateMachine = _Applied
    raftos.configure(
        {
            **timing.settings,
            "log_path": str(directory),
            "serializer": JSONSerializer,
            "cryptor": DummyCryptor,
        }
    )
