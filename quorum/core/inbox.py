"""What waits for a core: the control plane always before clients.

A broker that is flooded by producers must still answer its followers and its controller, or the
flood turns into elections. So everything by which the cluster runs itself (answers, completions,
requests of other nodes, follower fetches) is taken first, and requests of clients in slices,
between which the driver looks for more of the former.

Without priority, requests of all kinds wait in one plain queue, as they did before: kept to show
what that does.

A failure of the disk comes before everything else: the log takes no more writes from then on, and
what a core sent after another one would rest on a write that was never made.

Decides the order only. It is bounded by what each connection may have outstanding.

Source: KAFKA-4453, "prioritize controller requests"; seed 001 of the controller's redesign.
"""

from collections import deque
from collections.abc import Callable
from functools import cache

from quorum.core.effects import Event, Request, StorageFailed
from wire.api_table import API_VERSIONS_KEY, api_of
from wire.messages.fetching import FetchRequest

__all__ = ["Action", "Inbox", "is_control"]

Action = Callable[[int], None]  # something to be done to the core, with the time in ms


def is_control(request: Request) -> bool:
    """Does another node of the cluster wait for this?

    ApiVersions opens every connection, those of nodes too, and costs next to nothing.
    """
    if isinstance(request.body, FetchRequest):
        return request.body.replica_state.replica_id >= 0
    kind: type = type(request.body)
    return _is_control_kind(kind)


@cache
def _is_control_kind(kind: type) -> bool:
    try:
        api = api_of(kind)
    except KeyError:  # of no form on the wire: asked from inside the process
        return False
    return api.key == API_VERSIONS_KEY or api.control_plane


class Inbox:
    """`control` and `clients` are the two queues; only the methods change them."""

    __slots__ = (
        "_failures",
        "_prioritises",
        "clients",
        "clients_longest",
        "clients_taken",
        "control",
        "control_longest",
    )

    def __init__(self, *, prioritises: bool = True) -> None:
        self._prioritises = prioritises
        self._failures = 0  # of the disk: so many stand first in `control`
        self.control: deque[Event | Action] = deque()
        self.clients: deque[Request] = deque()
        self.control_longest = 0
        self.clients_longest = 0
        self.clients_taken = 0  # requests of clients in the last `take`

    def add(self, event: Event | Action) -> None:
        if isinstance(event, StorageFailed):
            self.control.insert(self._failures, event)
            self._failures += 1
        else:
            self.control.append(event)
        if len(self.control) > self.control_longest:
            self.control_longest = len(self.control)

    def add_request(self, request: Request) -> None:
        if self._prioritises and is_control(request):
            self.add(request)
            return
        self.clients.append(request)
        if len(self.clients) > self.clients_longest:
            self.clients_longest = len(self.clients)

    def take(self, *, control_max: int, clients_max: int) -> list[Event | Action]:
        """At most so many of each, in the order in which the core is to have them.

        Clients have their turn once nothing of the control plane is left.
        """
        control, clients = self.control, self.clients
        taken: list[Event | Action] = []
        while control and len(taken) < control_max:
            taken.append(control.popleft())
        if self._failures:
            self._failures = max(0, self._failures - len(taken))
        self.clients_taken = 0
        if clients and not control:
            self.clients_taken = min(len(clients), clients_max)
            taken += [clients.popleft() for _ in range(self.clients_taken)]
        return taken
