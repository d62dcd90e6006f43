"""Seeds that the script sets, so that a rule can tell chosen equality from accidental one.

Draws no random number and sets no seed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.imports import once_imported
from grader.probe.hooks.patches import outermost, replace
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_SEEDS = 16

_num_seeds = 0


def _seeded(api: str) -> Callable[..., None]:
    def after(_result: Any, _started_s: float, *args: Any, **kwargs: Any) -> None:
        global _num_seeds
        _num_seeds += 1
        if _num_seeds > _MAX_SEEDS:
            return
        value = args[0] if args else next(iter(kwargs.values()), None)
        known = value if isinstance(value, int) else None if value is None else str(value)[:100]
        writer.write(events.SEEDED, api=api, value=known, site=code_locations.here())

    return after


def _hook_numpy() -> None:
    module = sys.modules.get("numpy.random")
    replace([module], "seed", outermost("seed", _seeded("numpy.random.seed")))


def install() -> None:
    """Hook the seeding functions of torch, Python and numpy."""
    import torch

    replace([torch, torch.random], "manual_seed", outermost("seed", _seeded("torch.manual_seed")))
    replace([torch.cuda], "manual_seed", outermost("seed", _seeded("torch.cuda.manual_seed")))
    replace([torch.cuda], "manual_seed_all", outermost("seed", _seeded("torch.cuda.manual_seed_all")))
    replace([random], "seed", outermost("seed", _seeded("random.seed")))
    once_imported("numpy.random", _hook_numpy)
