"""Ask everything, of everybody, of both sides: `python -m tests.security_matrix --page FILE`."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.security_matrix.asking import Matrix
from tests.security_matrix.sides import secured_sides
from tests.security_matrix.table import page


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.security_matrix", description=__doc__)
    parser.add_argument("--page", type=Path, help="write the table there")
    args = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as directory, secured_sides(Path(directory)) as sides:
        matrix = Matrix(*sides)
        matrix.prepare()
        cells = []
        for cell in matrix.cells():
            cells.append(cell)
            print("".join(f"{line}\n" for line in cell.unexplained), end="", flush=True)
    wrong = sum(bool(cell.unexplained) for cell in cells)
    told = f"{len(cells)} requests, {wrong} answers differ without a reason."
    print(f"{told} {time.monotonic() - begun:.0f} s")
    if args.page is not None:
        args.page.write_text(page(cells, told=[told]))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
