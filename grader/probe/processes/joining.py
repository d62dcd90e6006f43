"""Where a script starts its ranks by itself: the moment in which one of its processes becomes a rank.

A process that joins a process group is a rank, whatever started it, and its number is the group's. One that trains
without a group is a rank, too: it should have joined. What a process did before is told then (see `writer`). Helpers,
workers of loaders and the process that only starts others never come here.
"""

from __future__ import annotations

import functools
import inspect
import os
import platform
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlparse

from grader.probe.communication import flight_recorder
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import replace
from grader.probe.trace import events
from grader.probe.trace.seals import Sealer
from grader.probe.trace.writer import writer


@dataclass(frozen=True, slots=True)
class JoinedRank:
    """What the supervisor tells a process that it takes for a rank.

    Attributes:
        rank: its number; world_size: as the launcher was told.
        fd: of the rank's own pipe; questions: as `install` has them; origin: the ranks' start, monotonic, seconds.
    """

    rank: int
    world_size: int
    fd: int
    questions: int
    origin: float


Finish = Callable[[BaseException | None], None]
Join = Callable[[int | None], JoinedRank | None]
"""Asks the supervisor to be the rank of a number (None: of the first that is free); None: it is not."""

_ask: Join | None = None
_finish: Finish | None = None
_seed = 0
_sealers: list[Sealer | None] = []
_index: int | None = None


def install(ask: Join, sealers: list[Sealer | None], finish: Finish) -> None:
    """Be ready to join; before any line of the script.

    Args:
        ask: see `Join`; sealers: of every rank, so that no process needs the key later.
        finish: called with the exception that ended a process which `mp.spawn` started.
    """
    global _ask, _finish
    _ask, _finish = ask, finish
    _sealers[:] = sealers
    # The package has a function of the same name.
    spawning = sys.modules.get("torch.multiprocessing.spawn")
    if spawning is not None:
        replace([spawning], "_wrap", _wrap_spawned)


def begin(origin: float, seed: int) -> None:
    """Keep what this process does from here on.

    Args:
        origin: the run's start on the monotonic clock, seconds; seed: what its generators were seeded with.
    """
    global _seed
    _seed = seed
    counters.step_ended = origin
    writer.begin(origin)


def join(number: int | None = None) -> None:
    """Become a rank, if this process is none and the supervisor takes it for one; never raises."""
    try:
        if writer.gathering and _ask is not None:
            _join(_ask, number)
    except Exception:  # noqa: BLE001  # whatever broke, the script goes on as if we were not there
        writer.stop()


def _join(ask: Join, number: int | None) -> None:
    # Told by the script, by `mp.spawn`, by an environment like torchrun's; else in the order of coming.
    numbers = (number, _index, _decimal(os.environ.get("RANK", "")))
    told = ask(next((one for one in numbers if one is not None), None))
    lines = writer.gathered()
    if told is None:
        writer.stop()
        return
    begun = writer.now()
    sealer = _sealers[told.rank] if _sealers else None
    _sealers.clear()
    writer.open(told.fd, told.origin, sealer)
    _tell_start(told, min([begun, *map(_time, lines)]))
    for line in lines:
        writer.send(line)
    if told.questions >= 0:
        flight_recorder.install(told.questions)


def _tell_start(told: JoinedRank, begun_s: float) -> None:
    torch = sys.modules.get("torch")
    writer.write(
        events.START,
        t=round(begun_s, 6),
        torch=str(torch.__version__) if torch is not None else "",
        python=platform.python_version(),
        rank=told.rank,
        local_rank=told.rank,
        world_size=told.world_size,
        pid=os.getpid(),
        seed=_seed,
        probe=events.VERSION,
    )


def _time(line: bytes) -> float:
    try:
        return float(line.partition(b'"t":')[2].partition(b",")[0].rstrip(b"}"))
    except ValueError:
        return writer.now()


def _decimal(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None


def before_group(init: Any) -> Any:
    """Make `init_process_group` join first; as it is where the launcher has started the ranks."""
    if _ask is None:
        return init
    signature = inspect.signature(init)

    @functools.wraps(init)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        number = None
        try:
            given = signature.bind_partial(*args, **kwargs).arguments
            number = _group_rank(given)
        except Exception:  # noqa: BLE001  # a wrong call is the script's own affair
            pass
        join(number)
        return init(*args, **kwargs)

    return init_process_group


def _group_rank(given: dict[str, Any]) -> int | None:
    rank = given.get("rank", -1)
    if isinstance(rank, int) and rank >= 0:
        return rank
    asked = parse_qs(urlparse(str(given.get("init_method") or "")).query).get("rank")
    return _decimal(asked[0]) if asked else _decimal(os.environ.get("RANK", ""))


def _wrap_spawned(original: Any) -> Any:
    """Around what `mp.spawn` runs in a child: its number, and the exception that it only sends to its parent."""

    @functools.wraps(original)
    def _wrap(fn: Any, i: Any, args: Any, error_file: Any) -> None:
        global _index
        _index = i if isinstance(i, int) else None
        try:
            original(fn, i, args, error_file)
        except SystemExit as leaving:
            cause = leaving.__context__
            if cause is not None and _finish is not None:
                join()
                _finish(cause)
                # Its parent prints this as well, but not as this rank's.
                traceback.print_exception(cause)
            raise

    return _wrap
