"""The families of messages: which API stands where, and what its structs are called."""

from collections import Counter
from importlib import import_module
from pathlib import Path

import wire.messages
from wire.api_table import APIS
from wire.message import Message
from wire.messages import FAMILIES

MODULES = {path.stem for path in Path(wire.messages.__file__).parent.glob("[!_]*.py")}


def test_every_api_stands_in_one_family() -> None:
    listed = [api for apis in FAMILIES.values() for api in apis]
    assert sorted(listed) == sorted(api.name for api in APIS)
    assert set(FAMILIES) | {"endpoints"} == MODULES


def test_no_two_structs_have_one_name() -> None:
    """Kafka has a PartitionData in seven messages; here a name alone says which."""
    modules = [import_module(f"wire.messages.{name}") for name in sorted(MODULES)]
    counted = Counter(
        name
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Message)
        and value.__module__ == module.__name__
    )
    assert counted.total() > 200
    assert {name for name, count in counted.items() if count > 1} == set()
