"""Verdicts on their way to the driver, and what many of them become."""

import pytest

from jepsen_like.checkers.verdict import Finding, Outcome, Verdict
from spark.verdicts import decoded, encoded, named, of_run, summed

FINDING = Finding(rule="phantom", object="k", detail="77 was read", ops=(1, 2))
VERDICT = Verdict.of([FINDING], objects=["k", "other"])


@pytest.mark.parametrize(("with_names", "names"), [(True, {"k", "other"}), (False, {"k"})])
def test_names_of_valid_objects_are_sent_only_if_asked_for(
    with_names: bool, names: set[str]
) -> None:
    told = decoded(encoded(VERDICT, with_names=with_names))
    assert set(told.objects) == names
    assert (told.outcome, told.findings) == (VERDICT.outcome, VERDICT.findings)


@pytest.mark.parametrize(("single_run", "name"), [(True, "k"), (False, "run: k")])
def test_objects_are_named_by_their_run_if_there_are_several(single_run: bool, name: str) -> None:
    doubted = Verdict.of([], doubts={named("run", "k"): "too large"})
    verdict = summed([of_run("run", VERDICT), doubted], single_run=single_run)
    assert [each.object for each in verdict.findings] == [name]
    assert verdict.objects[name] is Outcome.VIOLATED
    assert f"{name}: too large" in verdict.reason
