"""The catalogue of mistakes that people make with several ranks, and which check sees each.

`mistakes.toml` beside this file is the one place that says what is covered, by what, and what is out of reach and why.
It is documentation that tests hold true; no verdict reads it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Mistake:
    """One way to get it wrong.

    Attributes:
        number, name: stable; severity: `critical` (wrong training, hang or crash), `moderate` (wrong metric, data or
            file) or `minor` (waste, noise, several nodes only), sometimes two of them.
        wrong: one sentence.
        codes: checks that see it; diagnoses: explanations of crashes and hangs that do.
        fixtures, submissions, tests: what proves that: files below `tests/checks/fixtures` (without `.py`),
            `<task>/<verdict>/<name>` below `tasks`, and pytest ids.
        out_of_reach: why nothing can see it; "" where something does.
    """

    number: int
    name: str
    severity: str
    wrong: str
    codes: tuple[str, ...] = ()
    diagnoses: tuple[str, ...] = ()
    fixtures: tuple[str, ...] = ()
    submissions: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    out_of_reach: str = ""


@cache
def load_mistakes() -> tuple[Mistake, ...]:
    """The catalogue, by number."""
    text = (Path(__file__).parent / "mistakes.toml").read_text(encoding="utf-8")
    return tuple(sorted(map(_mistake, tomllib.loads(text)["mistake"]), key=lambda mistake: mistake.number))


def _mistake(entry: dict[str, Any]) -> Mistake:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    return Mistake(**fields)
