"""Arguments of a script as a task has them: names in braces stand for numbers and addresses that a run has."""

from __future__ import annotations

import re
from collections.abc import Mapping

NAMES_IN_BRACES = ("{nproc}", "{nnodes}", "{node_rank}", "{world_size}", "{master_addr}", "{master_port}")
_BRACED = re.compile(r"\{\w*\}")


def fill_in(text: str, values: Mapping[str, object]) -> str:
    """An argument with values in the place of the names that are known; the others stay."""
    return _BRACED.sub(lambda found: str(values.get(found[0], found[0])), text)


def unknown_names(text: str) -> list[str]:
    """Names in braces that stand for nothing."""
    return [name for name in _BRACED.findall(text) if name not in NAMES_IN_BRACES]
