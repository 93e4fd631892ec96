"""`python -m tests.recordings [NAME ...]`: record the sessions of docs/recordings anew.

Writes a cast for each session, and its picture; with `--pictures`, only these.
"""

import sys
from pathlib import Path

from tests.recordings.cast import parse
from tests.recordings.picture import svg
from tests.recordings.sessions import SESSIONS, pictured, recorded

FOLDER = Path(__file__).parent.parent.parent / "docs" / "recordings"


def main(names: list[str]) -> None:
    is_new = "--pictures" not in names
    for name in [name for name in names if name in SESSIONS] or list(SESSIONS):
        file = FOLDER / f"{name}.cast"
        if is_new:
            file.write_text(recorded(name).text())
        cast = parse(file.read_text())
        file.with_suffix(".svg").write_text(svg(pictured(name, cast), cast.title))
        print(f"{file.name}: {len(cast.events)} events, {file.stat().st_size} B")


if __name__ == "__main__":
    main(sys.argv[1:])
