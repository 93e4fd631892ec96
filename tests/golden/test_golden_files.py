"""The captured files are all there, unchanged in size, and small."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LISTINGS = sorted(HERE.glob("*/*.files.json"))
SIZE_MAX = 1_000_000


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda p: p.relative_to(HERE).as_posix())
def test_listed_files_are_there(listing: Path) -> None:
    folder = listing.with_name(listing.name.removesuffix(".files.json"))
    listed = {
        name: about["size"]
        for name, about in json.loads(listing.read_text()).items()
        if about.get("kept", True)
    }
    found = {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert found == listed


def test_golden_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in HERE.rglob("*") if path.is_file()) < SIZE_MAX
