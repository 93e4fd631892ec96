"""The exported picture: it has what the answers say, in its place, and is a file of its own."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jepsen_like.installation import ROOT
from quorumlab.arguments import Failed, UsageError
from quorumlab.cli import main
from quorumlab.compare.answers import answer
from quorumlab.compare.page import answers_of
from quorumlab.compare.picture import picture
from quorumlab.compare.results import Results
from quorumlab.pictures import refuse_other_picture, write_picture
from tests.jepsen_like.report.drawn import texts_of, too_wide
from tests.quorumlab.compare.compared import compared
from tests.quorumlab.compare.test_answers import ONCE, THRICE, crash
from tests.quorumlab.compare.test_page import HOSTILE


@pytest.mark.parametrize("results", [ONCE, THRICE], ids=["one run", "three runs"])
def test_answers_and_bars_of_real_results_are_drawn(results: Results) -> None:
    svg = picture(results)
    assert too_wide(svg) == []
    text = " ".join(texts_of(svg))
    for told in answers_of(results).values():
        assert told.claim in text
        assert all(each in text for each in told.reservations)
    assert "The machine was busy" in text
    assert svg.count("stroke-dasharray") > 3, "hollow bars"


def test_picture_of_the_documents_is_what_is_drawn_today() -> None:
    """To draw it anew: `compare --stored --export`, of stored/thrice.json as results.json."""
    assert (ROOT / "docs" / "pictures" / "compare.svg").read_text() == picture(THRICE)


def test_every_experiment_fits(tmp_path: Path) -> None:
    assert too_wide(picture(compared(tmp_path, (10, 1000)))) == []


def test_hostile_texts_stay_texts_and_in_their_place(tmp_path: Path) -> None:
    cells = [crash("quorum", 5), crash("zk-v3", None, outcome="failed", why=HOSTILE * 9)]
    results = Results(tmp_path / "results.json", {"commit": HOSTILE, "python": "x" * 900}, 1)
    results.cells = {cell.key: cell for cell in cells}
    svg = picture(results)
    assert "<script" not in svg
    assert too_wide(svg) == []
    assert answer(cells, is_busy=False).claim in " ".join(texts_of(svg))


@pytest.mark.parametrize("name", ["answers.svg", "answers.png"])
def test_stored_results_are_exported_again_and_again(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.endswith(".png"):
        pytest.importorskip("resvg_py")
    replace_path(ONCE, tmp_path / "results.json").save()
    out = tmp_path / name
    for _ in range(2):
        assert main(["compare", "--stored", "--out", str(tmp_path), "--export", str(out)]) == 0
        assert f"{tmp_path / 'compare.html'}, {out}" in capsys.readouterr().out
    assert out.read_bytes()[:4] == (b"\x89PNG" if name.endswith(".png") else b"<!--")


def replace_path(results: Results, path: Path) -> Results:
    return Results(path, results.machine, results.seed, cells=dict(results.cells))


def test_png_without_resvg_is_told_how_to_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert main(["compare", "--stored", "--export", str(tmp_path / "answers.png")]) == 1
    said = capsys.readouterr().err
    assert "resvg_py is missing" in said
    assert "[png]" in said
    assert said.count("\n") == 1


def test_no_file_of_others_is_overwritten(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.svg"
    theirs.write_text("<svg/>")
    with pytest.raises(Failed, match="name another one"):
        refuse_other_picture(theirs)
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        refuse_other_picture(tmp_path / "answers.pdf")
    write_picture(tmp_path / "ours.svg", picture(ONCE))
    refuse_other_picture(tmp_path / "ours.svg")


def test_a_failed_cell_is_an_error_of_stored_results_too(tmp_path: Path) -> None:
    results = replace_path(ONCE, tmp_path / "results.json")
    cell = next(iter(results.cells.values()))
    results.add(replace(cell, outcome="failed", why="a node died"))
    assert main(["compare", "--stored", "--out", str(tmp_path)]) == 1
