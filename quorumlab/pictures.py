"""Pictures as files: an SVG as it was drawn, or a PNG that resvg makes of it (the extra `png`)."""

import struct
import zlib
from pathlib import Path

from quorumlab.arguments import Failed, UsageError
from quorumlab.output import refuse_other_file

__all__ = ["refuse_other_picture", "write_picture"]

_OPTION = "--export"
_OURS = "quorumlab"
_SVG_MARK = f"<!-- drawn by {_OURS} -->\n"
_PNG_MARK = b"Software\0" + _OURS.encode()
_HEADER_END = 33  # of a PNG: its signature, and the chunk that every PNG begins with
_SHARPNESS = 2.0  # for screens of today
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="9">{}</text></svg>'


def refuse_other_picture(path: Path | None) -> None:
    """Called before anything is measured, which may take long. Raises `Failed`, `UsageError`, or
    ModuleNotFoundError for a PNG without resvg, whose message says what to install."""
    if path is None:
        return
    if path.suffix not in (".svg", ".png"):
        raise UsageError(f"{_OPTION} {path}: name a file that ends with .svg or .png")
    if path.suffix == ".png" and _png(_PROBE.format("M")) == _png(_PROBE.format("")):
        raise Failed(f"{_OPTION} {path}: no font is installed, such as DejaVu Sans; take .svg")
    refuse_other_file(path, option=_OPTION, is_own=_is_ours)


def write_picture(path: Path, svg: str) -> None:
    content = _marked(_png(svg)) if path.suffix == ".png" else (_SVG_MARK + svg).encode()
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Failed(f"cannot write {path}: {error.strerror}") from error


def _png(svg: str) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_SHARPNESS))


def _marked(png: bytes) -> bytes:
    """By a text that says who made it."""
    kind = b"tEXt" + _PNG_MARK
    chunk = struct.pack(">I", len(_PNG_MARK)) + kind + struct.pack(">I", zlib.crc32(kind))
    return png[:_HEADER_END] + chunk + png[_HEADER_END:]


def _is_ours(head: str) -> bool:
    return head.startswith(_SVG_MARK) or _PNG_MARK.decode() in head[:200]
