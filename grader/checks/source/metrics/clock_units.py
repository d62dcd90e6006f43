"""Seconds that are another unit, of another clock, or counted more than once: by how far they are off, and where.

Asked only where a scorer has found a table's seconds to contradict the run's own clock; decides nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from grader.checks.source.metrics.late_readings import restarted_clock
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.metrics.untimed_images import untimed_images
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_scaled
from grader.checks.source.syntax.nodes import name_of, start
from grader.checks.source.values.data_flow import all_parts, is_printed

_TOLD = (
    re.compile(r"adds up to ([\d.]{1,30}) s(?: of training)? in a run of ([\d.]{1,30}) s"),
    re.compile(r"took ([\d.e+-]{1,30}) s; by the clock beside the script it took ([\d.e+-]{1,30}) s"),
)
_CLOCKS = ("perf_counter", "time", "monotonic", "elapsed_time", "default_timer", "total_seconds")
_WHOLE_CLOCKS = ("perf_counter_ns", "time_ns", "monotonic_ns")
_CPU_CLOCKS = ("process_time", "process_time_ns", "thread_time", "thread_time_ns")
_TIMES = re.compile(r"elapsed|seconds|duration|\btimes?\b|_time\b|time_s\b", re.IGNORECASE)
_THOUSANDS = (10**3, 10**6, 10**9)
_FACTOR = 50
"""From so many times on, seconds are another unit: the smallest one is off by 1000."""


def clock_units(script: Script, said: str) -> Cause | None:
    """What makes seconds too many or too few; without nodes where only the ratio speaks, None of other sentences."""
    told = next((m for pattern in _TOLD if (m := pattern.search(said))), None)
    if told is None:
        return None
    got, seen = (float(number.rstrip(".")) for number in told.groups())
    ratio = got / seen if seen else float("inf")
    scaled = sorted(_scaled_clocks(script, ratio > 1), key=start)
    whole = _whole_clocks(script) if ratio > 1 else []
    if ratio < 1 and not scaled and (early := restarted_clock(script) or untimed_images(script)) is not None:
        return early
    if max(ratio, 1 / ratio if ratio else ratio) >= _FACTOR or (ratio > 1 and (scaled or whole)):
        return _in_other_unit(script, ratio, scaled, whole)
    return _too_many(script, ratio) if ratio > 1 and "adds up" in told[0] else None


def _in_other_unit(
    script: Script, ratio: float, scaled: list[ast.BinOp], whole: list[ast.Call]
) -> Cause | None:
    if scaled:
        first = scaled[0]
        kept = first.left if _is_clock(script, first.left) else first.right
        factor = first.right if kept is first.left else first.left
        sign = "milliseconds" if script.values.constant(factor) in (1000, 0.001) else "another unit"
        return Cause(
            (first,),
            f"Write `{ast.unparse(kept)}` for {script.quote(first)}: it is in seconds already, and that makes "
            f"{sign} of it.",
        )
    if whole:
        unit, size = (
            ("milliseconds", "1000") if name_of(whole[0]) == "elapsed_time" else ("nanoseconds", "1e9")
        )
        return Cause(
            (whole[0],),
            f"{script.quote(whole[0])} is in {unit}: divide by {size} before it is written as seconds.",
        )
    if ratio > 1:
        return Cause(
            (), f"That is {ratio:,.0f} times as long as it can be: look for milliseconds, 1000 to a second."
        )
    return None


def _too_many(script: Script, ratio: float) -> Cause:
    """More seconds than passed: time of several threads, or one stretch of it in several rows."""
    if cpu := sorted(script.called(*_CPU_CLOCKS), key=start):
        return Cause(
            tuple(cpu[:1]),
            f"{script.quote(cpu[0])} counts what all threads computed, several seconds in one: read "
            "`time.perf_counter()` before and after.",
        )
    return Cause(
        (),
        f"That is {ratio:.1f} times as long as the whole run, so some stretch of time is in more than one row: take "
        "`begin = time.perf_counter()` anew for each row, and write `time.perf_counter() - begin`.",
    )


def _scaled_clocks(script: Script, up: bool) -> Iterator[ast.BinOp]:
    """Where a time is multiplied by 1000 or the like (`up`) or divided by it, and not only for a `print`."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if not is_scaled(node) or is_printed(script, node):
                continue
            for factor, other in ((node.right, node.left), (node.left, node.right)):
                value = script.values.constant(factor)
                if isinstance(node.op, ast.Div) and factor is node.left:
                    continue
                grows = isinstance(node.op, ast.Mult) == (value in _THOUSANDS)
                by_unit = value in _THOUSANDS or value in (1e-3, 1e-6, 1e-9)
                if by_unit and grows == up and _is_clock(script, other) and not _undoes(script, node, other):
                    yield node
                    break


def _undoes(script: Script, node: ast.BinOp, time: ast.expr) -> bool:
    """Whether a division takes back what a clock of smaller units gave."""
    makes_less = isinstance(node.op, ast.Div)
    return makes_less and bool(
        {name_of(p) for p in all_parts(script, time)} & {*_WHOLE_CLOCKS, "elapsed_time"}
    )


def _is_clock(script: Script, node: ast.expr) -> bool:
    calls = [n for n in all_parts(script, node) if isinstance(n, ast.Call)]
    read = any(name_of(c) in (*_CLOCKS, *_WHOLE_CLOCKS, *_CPU_CLOCKS) for c in calls)
    return read or bool(_TIMES.search(name_of(node)))


def _whole_clocks(script: Script) -> list[ast.Call]:
    """Readings in smaller units, where nothing in the text divides by as many."""
    calls = sorted(script.called(*_WHOLE_CLOCKS, "elapsed_time"), key=start)
    divided = any(
        isinstance(n, ast.BinOp | ast.AugAssign)
        and isinstance(n.op, ast.Div | ast.Mult | ast.FloorDiv)
        and script.values.constant(n.right if isinstance(n, ast.BinOp) else n.value)
        in (*_THOUSANDS, 1e-3, 1e-6, 1e-9)
        for tree in script.trees
        for n in ast.walk(tree.root)
    )
    return [] if divided else calls
