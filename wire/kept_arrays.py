"""The bytes of an array that stands in many messages are kept, and written only once.

A broker answers Metadata requests with the same topics until one of them changes. It keeps each
topic as a `KeptArray` of one element, and joins those that an answer consists of. Each writer
leaves the bytes that it has made with the array, and takes them from there the next time. The
writer itself, which writes one field of one version of a message, is the key: whoever keeps an
array knows no version.

The bytes follow from the elements alone, which cannot change, so they are never wrong. An array
that no longer says what is true has to be dropped by its owner, and its bytes go with it.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Annotated, Any, TypeVar, get_args, get_origin

from wire.writing import Sink

__all__ = ["KEPT", "KeptArray", "may_be_kept", "write_kept"]

# Clients of one cluster speak few versions, and a writer beyond these takes another's place. So an
# array has the memory of this many encodings at most.
_WRITERS_MAX = 4

KEPT = object()  # the mark of a field that may hold a `KeptArray`
_Element = TypeVar("_Element")
ElementsWriter = Callable[[Sink, tuple[Any, ...]], None]  # all but the number of elements


class KeptArray(tuple[_Element, ...]):
    """A kept array is a tuple in all respects, and has the bytes that were made of it, too."""

    _parts: Sequence["KeptArray[_Element]"] = ()  # if there are any, it consists of their elements

    def __init__(self, _elements: Iterable[_Element] = ()) -> None:
        self._encodings: dict[ElementsWriter, bytes] = {}

    @classmethod
    def joined(cls, parts: Sequence["KeptArray[_Element]"]) -> "KeptArray[_Element]":
        """Return an array of the elements of all of them, whose bytes are theirs."""
        array = cls(chain.from_iterable(parts))
        array._parts = parts
        return array

    def written(self, write: ElementsWriter) -> bytes:
        """Return what `write` makes of the elements."""
        found = self._encodings.get(write)
        if found is None:
            if self._parts:
                found = b"".join([part.written(write) for part in self._parts])
            else:
                out = Sink()
                write(out, self)
                found = b"".join(out.buffers())
            if len(self._encodings) == _WRITERS_MAX:
                del self._encodings[next(iter(self._encodings))]
            self._encodings[write] = found
        return found


def write_kept(out: Sink, array: tuple[Any, ...], write: ElementsWriter) -> None:
    """Write the elements of what may be a `KeptArray`; generated writers call this."""
    if type(array) is KeptArray:
        out.splice(array.written(write))
    else:
        write(out, array)


def may_be_kept(annotation: Any) -> bool:
    """Has the field with this annotation the mark?"""
    return get_origin(annotation) is Annotated and KEPT in get_args(annotation)
