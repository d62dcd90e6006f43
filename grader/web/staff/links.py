"""Addresses of lists with their filters: what is not asked for stands in no address."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode


def link(place: str, wanted: Mapping[str, object]) -> str:
    """The address of a list; fields that are None or "" are left out."""
    kept = {name: value for name, value in wanted.items() if value is not None and value != ""}
    return f"{place}?{urlencode(kept)}" if kept else place
