"""A recorded terminal: asciicast, version 2, as asciinema plays it.

Source: https://docs.asciinema.org/manual/asciicast/v2/
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tests.recordings.screen import Screen

__all__ = ["COLUMNS", "PROMPT", "ROWS", "Cast", "Event", "parse"]

COLUMNS, ROWS = 80, 24
PROMPT = "$ "
_LINES_MAX = 10_000
Event = tuple[float, str]  # seconds since the beginning, and what the terminal was sent


@dataclass(frozen=True, slots=True)
class Cast:
    title: str
    events: tuple[Event, ...]

    def text(self) -> str:
        """As a file."""
        head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": self.title}
        head |= {"idle_time_limit": 2, "env": {"TERM": "xterm-256color", "SHELL": "/bin/sh"}}
        lines = [
            json.dumps(head),
            *(json.dumps([round(at, 3), "o", said]) for at, said in self.events),
        ]
        return "".join(f"{line}\n" for line in lines)

    def screens(self) -> Iterator[Screen]:
        """The same one after each event."""
        screen = Screen(COLUMNS, ROWS)
        for _, said in self.events:
            screen.feed(said)
            yield screen

    def paper(self) -> Screen:
        """All of it on a screen that is high enough."""
        screen = Screen(COLUMNS, _LINES_MAX)
        for _, said in self.events:
            screen.feed(said)
        return screen

    def command_lines(self) -> list[str]:
        return [
            said.removeprefix(PROMPT).rstrip("\r\n")
            for _, said in self.events
            if said.startswith(PROMPT)
        ]


def parse(text: str) -> Cast:
    """Raises ValueError if it is no asciicast of our size."""
    first, *rest = text.splitlines() or [""]
    head = json.loads(first)
    if (head["version"], head["width"], head["height"]) != (2, COLUMNS, ROWS):
        raise ValueError(f"another version or size: {first}")
    events: list[Event] = []
    for line in rest:
        at, kind, said = json.loads(line)
        if kind != "o" or not isinstance(said, str):
            raise ValueError(f"no output: {line}")
        if events and at < events[-1][0]:
            raise ValueError(f"time goes back: {line}")
        events.append((float(at), said))
    return Cast(head["title"], tuple(events))
