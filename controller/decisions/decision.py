"""What a rule of the controller returns."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from controller.metadata.changes import Change

__all__ = ["Decision"]

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[Answer]):
    """Changes to append, and the answer once they are committed.

    Changes that belong together (`is_atomic`) become one batch: all of them take effect, or none.
    `kraft_version` is to be finalised by the engine, before the changes: if it refuses, none of
    them is made.
    """

    response: Answer
    changes: tuple[Change, ...] = ()
    is_atomic: bool = True
    kraft_version: int | None = None
