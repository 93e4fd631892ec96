"""All items of the museum by id, in the order of the gallery: what `items.toml` says."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jepsen_like.museum.item import Exhibit, Item

__all__ = ["ITEMS"]


def _item(told: Mapping[str, Any]) -> Item:
    mechanism = " ".join(told["mechanism"].split())
    exhibits = tuple(Exhibit(**each) for each in told["exhibits"])
    return Item(**{**told, "mechanism": mechanism, "exhibits": exhibits})


_TOLD = tomllib.loads(files(__package__).joinpath("items.toml").read_text(encoding="utf-8"))
ITEMS: Mapping[str, Item] = {each["id"]: _item(each) for each in _TOLD["items"]}
