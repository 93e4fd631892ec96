"""Every version of every message, to and from its canonical form.

Readers and writers are compiled at first use, from kio's layout of that version and the canonical
class of the same name, and kept. Only the modules of versions in use are imported: all of kio's
take a second to load.
"""

from functools import cache
from importlib import import_module
from typing import Any

from msgspec import MsgspecError, msgpack

from wire.api_table import CONTROL_RPCS, camel_case
from wire.differences import rules_for
from wire.layout import EntityLayout
from wire.messages import FAMILIES
from wire.reader_source import compiled_reader
from wire.reading import Reader
from wire.rules import Rules
from wire.schema import load_layout
from wire.varint import Malformed
from wire.writer_source import compiled_writer
from wire.writing import Sink, Writer

__all__ = ["canonical_class", "codec_parts", "is_flexible", "preload", "reader_for", "writer_for"]

# `api` is a name of `wire.api_table`; `kind` is "request" or "response".
# The classes of control RPCs share one module, and have one version.
_CONTROL_RPCS = frozenset(api.name for api in CONTROL_RPCS)
_MODULES = {api: f"wire.messages.{family}" for family, apis in FAMILIES.items() for api in apis}
_MODULES |= dict.fromkeys(_CONTROL_RPCS, "wire.zk.control_rpc")


def canonical_class(api: str, kind: str) -> Any:
    """For example `FetchRequest` for ("fetch", "request")."""
    return getattr(import_module(_MODULES[api]), camel_case(api) + kind.title())


def codec_parts(api: str, version: int, kind: str) -> tuple[EntityLayout, Any, Rules]:
    """What a reader and a writer of one version are compiled from."""
    layout = load_layout(api, version, kind)
    return layout, canonical_class(api, kind), rules_for(api, version, kind)


@cache
def reader_for(api: str, version: int, kind: str) -> Reader:
    """The reader of one version, see `wire.reading`."""
    if api in _CONTROL_RPCS:
        return _unpacking(canonical_class(api, kind))
    return compiled_reader(*codec_parts(api, version, kind))


@cache
def writer_for(api: str, version: int, kind: str) -> Writer:
    """The writer of one version, see `wire.writing`."""
    if api in _CONTROL_RPCS:
        return _packing(canonical_class(api, kind))
    return compiled_writer(*codec_parts(api, version, kind))


def _unpacking(message: type) -> Reader:
    decoder: msgpack.Decoder[Any] = msgpack.Decoder(message)

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        try:
            return decoder.decode(buffer[position:]), len(buffer)
        except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed(f"{message.__name__}: {error}") from error

    return read


def _packing(message: type) -> Writer:
    def write(out: Sink, body: Any) -> None:
        assert type(body) is message, (type(body), message)
        out += msgpack.encode(body)

    return write


@cache
def is_flexible(api: str, version: int, kind: str) -> bool:
    """Does this version have tagged fields, and so a header that has them (KIP-482)?"""
    return api not in _CONTROL_RPCS and load_layout(api, version, kind).flexible


def preload() -> None:
    """Load what all codecs share, and the API that opens every connection.

    It takes a third of a second: at the first message it would hold up an event loop for so long
    that on a busy machine peers give up connecting.
    """
    for kind in ("request", "response"):
        for version in (0, 3, 4):
            reader_for("api_versions", version, kind)
            writer_for("api_versions", version, kind)
