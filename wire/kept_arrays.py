"""Arrays that stand in many messages: their bytes are kept, so that they are written only once.

A broker answers Metadata requests with the same topics and partitions until one of them changes. It
builds such an array once, as a `KeptArray`, and puts it into every answer. Each writer leaves the
bytes that it has made with the array, and takes them from there the next time. The writer itself,
which writes one field of one version of a message, is the key: whoever keeps an array knows no
version.

The bytes follow from the array alone, which cannot change, so they are never wrong. An array that
no longer says what is true has to be dropped by its owner, and its bytes are dropped with it. What
an answer says beside the array, as the operations that the client may do, is never kept.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar, get_args, get_origin

from wire.writing import Sink

__all__ = ["KEPT", "KeptArray", "may_be_kept", "write_kept"]

# Clients of one cluster speak few versions, and a writer beyond these takes another's place. So an
# array has the memory of this many encodings at most.
_WRITERS_MAX = 4

KEPT = object()  # the mark of a field that may hold a `KeptArray`
_Element = TypeVar("_Element")
ArrayWriter = Callable[[Sink, tuple[Any, ...]], None]


class KeptArray(tuple[_Element, ...]):
    """A tuple in all respects, which has the bytes that were made of it beside its elements."""

    def __init__(self, _elements: Iterable[_Element] = ()) -> None:
        self._encodings: dict[ArrayWriter, bytes] = {}

    def written(self, write: ArrayWriter) -> bytes:
        """Return what `write` makes of the array."""
        found = self._encodings.get(write)
        if found is None:
            out = Sink()
            write(out, self)
            if len(self._encodings) == _WRITERS_MAX:
                del self._encodings[next(iter(self._encodings))]
            found = self._encodings[write] = b"".join(out.buffers())
        return found


def write_kept(out: Sink, array: tuple[Any, ...], write: ArrayWriter) -> None:
    """Write an array that may be a `KeptArray`; generated writers call this."""
    if type(array) is KeptArray:
        out.splice(array.written(write))
    else:
        write(out, array)


def may_be_kept(annotation: Any) -> bool:
    """Has the field with this annotation the mark?"""
    return get_origin(annotation) is Annotated and KEPT in get_args(annotation)
