"""A line of a submission that called something."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """A call site inside the submission; `path` relative to its folder."""

    path: str
    line: int
    function: str
