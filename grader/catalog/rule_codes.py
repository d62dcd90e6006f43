"""Codes of rules, from the names of their files: the catalog lies below the checks and imports none."""

from __future__ import annotations

import re

from grader.plugins.sources import RULES, plugin_files

_CODE = re.compile(r"[A-Z]+\d{3}")


def known_codes() -> frozenset[str]:
    """Codes of all rules that there are."""
    return frozenset(code for file in plugin_files(RULES) if _CODE.fullmatch(code := code_of(file.name)))


def code_of(module: str) -> str:
    """The code of a rule, from the name of its module."""
    return module.partition("_")[0].upper()
