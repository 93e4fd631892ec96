"""The table of agreement: a row a model. A new one needs an object, its truth, and its checker."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from jepsen_like.checkers import judge
from jepsen_like.checkers.log_columns import LogColumns
from jepsen_like.checkers.models import QUEUE, REGISTER, STRINGS, Model
from jepsen_like.checkers.operations import Operation, operations
from jepsen_like.checkers.verdict import Verdict
from jepsen_like.histories.history import INITIAL, History
from tests.agreement import chains, objects, queues
from tests.agreement.dense_logs import dense_linearizability
from tests.agreement.playing import Simulated

__all__ = ["MODELS", "Agreed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """`step` says what may happen. `fast` judges what it says, and nothing else."""

    simulated: Callable[[Random], Simulated]
    initial: Hashable
    step: Callable[[Any, Operation], Any]
    fast: Callable[[History], Verdict]
    is_keyed: bool = True  # arguments and results are [key, value]
    reads: frozenset[str] = frozenset({"read"})
    searched: Model | None = None  # the one of the product, if it has one

    @property
    def model(self) -> Model:
        return self.searched or Model(initial=self.initial, step=self.step, reads=self.reads)


def _judged_as_begun(history: History) -> Verdict:
    options = {INITIAL: [objects.INITIAL_VALUE]}
    return judge(replace(history, header=replace(history.header, options=options)))


def _judged_dense(history: History) -> Verdict:
    columns = LogColumns.of(operations(history.ops))
    return dense_linearizability(columns)


MODELS = {
    "log": Agreed(
        simulated=objects.Log,
        initial=(),
        step=objects.after_append,
        fast=_judged_dense,
        is_keyed=False,
        reads=frozenset({"poll"}),
    ),
    "register, written once": Agreed(
        simulated=objects.Register,
        initial=None,
        step=objects.after_access,
        fast=judge,
        searched=REGISTER,
    ),
    "register, versions": Agreed(
        simulated=objects.VersionedRegister,
        initial=(None, 0),
        step=objects.after_version,
        fast=judge,
    ),
    "register, versions, conditional writes": Agreed(
        simulated=objects.ConditionalRegister,
        initial=(None, 0, True),
        step=objects.after_conditional,
        fast=judge,
        searched=Model(initial=(None, 0, True), step=objects.after_conditional, reads=frozenset()),
    ),
    "register, compare-and-set": Agreed(
        simulated=objects.CasRegister, initial=None, step=objects.after_change, fast=judge
    ),
    "register, compare-and-set of new values": Agreed(
        simulated=chains.ChainRegister, initial=None, step=objects.after_change, fast=judge
    ),
    "register, begins with a value": Agreed(
        simulated=objects.BegunRegister,
        initial=objects.INITIAL_VALUE,
        step=objects.after_access,
        fast=_judged_as_begun,
    ),
    "register, compare-and-set, begins with a value": Agreed(
        simulated=objects.BegunCasRegister,
        initial=objects.INITIAL_VALUE,
        step=objects.after_change,
        fast=_judged_as_begun,
    ),
    "set": Agreed(
        simulated=objects.Element,
        initial=False,
        step=objects.after_listing,
        fast=judge,
        is_keyed=False,
    ),
    "queue": Agreed(
        simulated=queues.Queue, initial=(), step=queues.after_queueing, fast=judge, searched=QUEUE
    ),
    "queue, values come again": Agreed(
        simulated=queues.RepeatingQueue, initial=(), step=queues.after_queueing, fast=judge
    ),
    "strings": Agreed(
        simulated=objects.Strings,
        initial="",
        step=objects.after_string,
        fast=judge,
        reads=frozenset({"get"}),
        searched=STRINGS,
    ),
}
