"""The variables that a site sets for its GPUs, checked: boards with broken peer access or another network need some.

Names of the GPU libraries alone, and none that the launcher sets itself: anything else would reach learners' scripts,
or change what they are judged by.
"""

from __future__ import annotations

import re
import shlex

from grader.errors import UsageError
from grader.launch.ranks.environment import own_names

_ALLOWED = ("NCCL_", "CUDA_", "TORCH_NCCL_", "TORCH_FR_")
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def rank_variables(text: str) -> tuple[tuple[str, str], ...]:
    """Names and values in `NCCL_P2P_DISABLE=1 NCCL_DEBUG_SUBSYS=INIT,NET`, quoted as in a shell where need be.

    Raises:
        UsageError: that is no such list, or a name that may not be set.
    """
    try:
        parts = [part.partition("=") for part in shlex.split(text)]
    except ValueError as error:
        raise UsageError(f"GRADER_RANK_ENV cannot be read: {error}") from error
    for name, sign, _value in parts:
        if not sign or not _NAME.fullmatch(name):
            raise UsageError(f"GRADER_RANK_ENV has {name!r}: give NAME=VALUE, with blanks between")
        if not name.startswith(_ALLOWED):
            allowed = ", ".join(f"{prefix}*" for prefix in _ALLOWED)
            raise UsageError(f"GRADER_RANK_ENV cannot set {name}: only {allowed} are for a site to set")
        if name in own_names():
            raise UsageError(f"GRADER_RANK_ENV cannot set {name}: the grader sets it itself")
    return tuple((name, value) for name, _sign, value in parts)
