"""What waits for a core: the control plane always before clients.

A broker that is flooded by producers must still answer its followers and its controller, or the
flood turns into elections. So everything by which the cluster runs itself (answers, completions,
requests of other nodes, follower fetches) is taken first, and requests of clients in slices,
between which the driver looks for more of the former.

Without priority, requests of all kinds wait in one plain queue, as they did before: kept to show
what that does.

Decides the order only. It is bounded by what each connection may have outstanding.

Source: KAFKA-4453, "prioritize controller requests"; seed 001 of the controller's redesign.
"""

from collections import deque
from collections.abc import Callable

from quorum.core.effects import Event, Request
from wire.api_table import API_VERSIONS_KEY, api_by_key
from wire.messages.fetch import FetchRequest

__all__ = ["Action", "Inbox", "is_control"]

Action = Callable[[int], None]  # something to be done to the core, with the time in ms


def is_control(request: Request, api_key: int) -> bool:
    """Does another node of the cluster wait for this?

    ApiVersions opens every connection, those of nodes too, and costs next to nothing.
    """
    if isinstance(request.body, FetchRequest):
        return request.body.replica_state.replica_id >= 0
    api = api_by_key(api_key)
    return api_key == API_VERSIONS_KEY or (api is not None and api.control_plane)


class Inbox:
    __slots__ = ("_clients", "_control", "_prioritises", "clients_longest", "control_longest")

    def __init__(self, *, prioritises: bool = True) -> None:
        self._prioritises = prioritises
        self._control: deque[Event | Action] = deque()
        self._clients: deque[Request] = deque()
        self.control_longest = 0
        self.clients_longest = 0

    @property
    def control_length(self) -> int:
        return len(self._control)

    @property
    def clients_length(self) -> int:
        return len(self._clients)

    def __bool__(self) -> bool:
        return bool(self._control or self._clients)

    def add(self, event: Event | Action) -> None:
        self._control.append(event)
        self.control_longest = max(self.control_longest, len(self._control))

    def add_request(self, request: Request, api_key: int) -> None:
        if self._prioritises and is_control(request, api_key):
            self.add(request)
        else:
            self.add_client(request)

    def add_client(self, request: Request) -> None:
        self._clients.append(request)
        self.clients_longest = max(self.clients_longest, len(self._clients))

    def next_control(self) -> Event | Action | None:
        return self._control.popleft() if self._control else None

    def next_client(self) -> Request | None:
        """None as long as there is anything of the control plane; without priority, the next one of
        any kind.
        """
        return self._clients.popleft() if self._clients and not self._control else None
