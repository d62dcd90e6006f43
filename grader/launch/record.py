"""The supervisor's findings as JSON: field for field what the grader's `RunRecord` reads.

The runtime that asked for the run fills in what only it knows (its name, the files it collected).
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grader.launch.endings.failure import LastWords, last_words
from grader.launch.endings.flight_records import FlightRecord, held_by
from grader.launch.endings.stacks import StackFrame, in_folder, operation
from grader.launch.ranks.rank_process import RankProcess
from grader.launch.ranks.seal_key import SealKey
from grader.launch.ranks.streams import safe_text
from grader.launch.spec import LaunchSpec
from grader.probe.trace.seals import look_through

_LONGEST_STACK = 64
_LONGEST_NAME = 300


def write_run(
    spec: LaunchSpec,
    ranks: list[RankProcess],
    ending: tuple[str, str],
    wall_s: float,
    facts: dict[str, Any],
    loopback_bytes: int | None,
    key: SealKey,
) -> None:
    """Write the logs, then `record.json`, whose presence says that all the rest is there.

    Args:
        spec: the run.
        ranks: all of them, ended and drained.
        ending: word and sentence.
        wall_s: start of the first rank to the exit of the last, seconds.
        facts: of the machine, taken at the start.
        loopback_bytes: sent by this node's ranks, None where not observable.
        key: of the run.
    """
    for rank in ranks:
        for name, stream in (("out", rank.out), ("err", rank.err)):
            path = Path(spec.record_dir, "logs", f"rank{rank.rank}.{name}")
            path.write_text(stream.text(), encoding="utf-8", newline="\n")
    records = {rank.rank: rank.record for rank in ranks}
    record = {
        "runtime": "",
        "launcher": spec.launcher,
        "isolated": False,
        "world_size": len(ranks),
        "ending": ending[0],
        "ending_reason": ending[1],
        "wall_s": round(wall_s, 6),
        "deadline_s": spec.wall_s,
        "ranks": [_rank_record(spec, rank, key, records) for rank in ranks],
        "outputs": [],
        "phases_s": {},
        "environment": facts,
        "loopback_bytes": loopback_bytes,
    }
    write_json(Path(spec.record_dir, "record.json"), record)


def _rank_record(
    spec: LaunchSpec, rank: RankProcess, key: SealKey, records: Mapping[int, FlightRecord | None]
) -> dict[str, Any]:
    """One `RankRecord`."""
    words = last_words(rank.err.end_text()) if rank.exit_code not in (None, 0) else None
    foreign, gone = _unsealed(rank, key)
    exit_code = rank.exit_code
    if rank.killed_by_judge and exit_code is not None and exit_code < 0:
        # The judge's own signal says nothing about the rank.
        exit_code = None
    return {
        "rank": rank.rank,
        "node": spec.node_rank,
        "exit_code": exit_code,
        "killed_by_judge": rank.killed_by_judge,
        "started_s": round(rank.started_s, 6),
        "ended_s": round(rank.ended_s or 0.0, 6),
        "cpu_user_s": round(rank.cpu_user_s, 6),
        "cpu_system_s": round(rank.cpu_system_s, 6),
        "peak_rss_bytes": rank.peak_rss_bytes,
        "stdout_bytes": rank.out.num_bytes,
        "stderr_bytes": rank.err.num_bytes,
        "stdout_lines": rank.out.num_lines,
        "output_cut": rank.out.cut or rank.err.cut,
        "trace_bytes": rank.trace.num_bytes,
        "trace_cut": rank.trace.cut,
        "foreign_lines": foreign,
        "gone_lines": gone,
        "waiting": _waiting(spec, rank, records),
        "failure": _failure(spec, words),
        "leftovers": rank.leftovers,
    }


def _unsealed(rank: RankProcess, key: SealKey) -> tuple[int, int]:
    """Lines of a finished trace that its probe did not write, and lines of the probe's that are not in it."""
    if not key.raw:
        return 0, 0
    with rank.trace.path.open("rb") as file:
        return look_through((line.partition(b"\t")[2].rstrip(b"\n") for line in file), key.raw, rank.rank)


def crash_reason(spec: LaunchSpec, rank: RankProcess) -> str:
    """How a rank that failed came to its end, as a sentence without its full stop."""
    code, who = rank.exit_code, spec.name(rank.rank)
    words = last_words(rank.err.end_text())
    if code is not None and code < 0:
        detail = f" ({words.type}: {words.message[:200]})" if words is not None and not words.frames else ""
        return f"{who} was ended by {signal_name(-code)}{detail}"
    if words is None:
        return f"{who} ended with exit code {code}"
    site = next((f for f in words.frames if in_folder(f.path, spec.submission_dir)), None)
    where = f" at {_relative(spec, site.path)}:{site.line}" if site is not None else ""
    return f"{who} raised {words.type}{where} (exit code {code})"


def signal_name(signum: int) -> str:
    """`SIGSEGV` for 11; `signal 62` where there is no name."""
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a file that is either whole or not there; a write that fails leaves nothing behind."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(value, indent=1) + "\n")
        beside.replace(path)
    finally:
        # Gone already where it was moved.
        beside.unlink(missing_ok=True)


def _waiting(
    spec: LaunchSpec, rank: RankProcess, records: Mapping[int, FlightRecord | None]
) -> dict[str, Any] | None:
    if rank.stack is None:
        return None
    stack, named = rank.stack.frames, operation(rank.stack.frames, spec.submission_dir)
    held = held_by(rank.rank, records) if not named else None
    if held is not None and held.lines:
        # Where it waits says nothing: what it waits for was begun elsewhere, at a line that may be of some ranks only.
        stack = _begun(spec, held.lines, stack)
    frames = [_frame(spec, frame) for frame in stack[:_LONGEST_STACK]]
    return {
        "frames": frames,
        "operation": held.operation if held is not None else named,
        "site": next((frame for frame in frames if frame["in_submission"]), None),
    }


def _begun(
    spec: LaunchSpec, lines: Iterable[tuple[str, int, str]], now: Sequence[StackFrame]
) -> tuple[StackFrame, ...]:
    """The stack where something was begun: the lines that are known, and what called the outermost of them."""
    known = tuple(
        StackFrame(str(Path(spec.submission_dir, path)), line, function) for path, line, function in lines
    )
    outermost = (known[-1].path, known[-1].function)
    around = next((i for i, frame in enumerate(now) if (frame.path, frame.function) == outermost), len(now))
    return (*known, *now[around + 1 :])


def _failure(spec: LaunchSpec, words: LastWords | None) -> dict[str, Any] | None:
    if words is None:
        return None
    frames = [_frame(spec, frame) for frame in words.frames[:_LONGEST_STACK]]
    message = _without_folders(spec, words.message)
    return {"type": words.type[:_LONGEST_NAME], "message": message, "frames": frames}


def _frame(spec: LaunchSpec, frame: StackFrame) -> dict[str, Any]:
    return {
        "path": _relative(spec, frame.path),
        "line": frame.line,
        "function": frame.function[:_LONGEST_NAME],
        "in_submission": in_folder(frame.path, spec.submission_dir),
    }


def _relative(spec: LaunchSpec, path: str) -> str:
    if in_folder(path, spec.submission_dir):
        path = path[len(spec.submission_dir.rstrip(os.sep)) + 1 :]
    return safe_text(path.encode("utf-8", errors="replace"))[:_LONGEST_NAME]


def _without_folders(spec: LaunchSpec, text: str) -> str:
    # The learner knows the folders by their variables; where they lie on this machine tells nothing.
    for folder, name in ((spec.output_dir, "$OUTPUT_DIR"), (spec.data_dir, "$DATA_DIR")):
        text = re.sub(re.escape(folder) + r"(?=[/'\"\s]|$)", lambda _match, name=name: name, text)  # type: ignore[misc]
    return text.replace(spec.submission_dir.rstrip(os.sep) + os.sep, "")
