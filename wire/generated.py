"""`python -m wire.generated Fetch 17`: the code that reads and writes one version of an API.

`python -m wire.generated Fetch 17 response` prints that of the answer.
"""

import sys

from wire.api_table import APIS
from wire.canonical import codec_parts
from wire.reader_source import reader_source
from wire.writer_source import writer_source

__all__ = ["codec_source"]


def codec_source(api: str, version: int, kind: str) -> str:
    """The source of a reader and of a writer; `kind` is "request" or "response"."""
    parts = codec_parts(api, version, kind)
    return f"{reader_source(*parts)}\n\n{writer_source(*parts)}"


def _main(title: str, version: str, kind: str = "request") -> None:
    names = {api.title: api.name for api in APIS}
    if title not in names:
        sys.exit(f"no API {title}: there are {', '.join(names)}")
    print(codec_source(names[title], int(version), kind), end="")


if __name__ == "__main__":
    _main(*sys.argv[1:])
