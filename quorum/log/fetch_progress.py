"""What a leader knows of a follower's log from its fetches, and when the follower last had it all.

Used for the metadata log and for partition logs alike. What a leader counts (a majority, the ISR),
and how long a follower may lag, is for each of them to say.

Source: Kafka's ReplicaState of LeaderState, and its Replica.
"""

from dataclasses import dataclass

__all__ = ["FetchProgress"]


@dataclass(slots=True, kw_only=True)
class FetchProgress:
    """A replica's progress, as its fetches in one leader epoch show it. The leader owns it."""

    log_end_offset: int = 0  # of its last valid fetch: it has all that lies before
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_offset: int = 0  # our log end at its last fetch

    def note_fetch(self, *, fetch_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """The follower has everything below `fetch_offset`: move its end and its caught-up time.

        A follower that always fetches a little behind a busy leader is caught up too: it then
        reaches where the leader's end was at its previous fetch, and was caught up at that time.
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif fetch_offset >= self.leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.leader_end_offset = leader_end_offset
        self.last_fetch_ms = now_ms
