"""Runs the trials one after the other, in the runtime that submissions run in, and writes down what they showed."""

from __future__ import annotations

import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from grader import __version__
from grader.doctor import Checkup
from grader.errors import GraderError, InfraError
from grader.gpu_trials.trial import TRIALS, Trial, TrialOutcome
from grader.run.devices.hardware import Inventory
from grader.run.host_devices import host_devices
from grader.run.registry import open_runtime
from grader.run.runtime import Progress, Runtime
from grader.run.script_runs import LIMITS, run_script

_ALL_S = 300.0
"""Trials take no longer together; what would begin later is left out and named."""
_BYTES_OF_A_RANK = 4 << 30
_LONGEST_WORDS = 300
_ENGINE_FACTS = (
    "ServerVersion",
    "KernelVersion",
    "OperatingSystem",
    "Driver",
    "CgroupDriver",
    "CgroupVersion",
    "DefaultRuntime",
    "Runtimes",
    "CDISpecDirs",
    "DiscoveredDevices",
)


@dataclass(frozen=True, slots=True)
class TrialReport:
    """What came of it: checkups for people, facts for whoever is to find out why."""

    checkups: tuple[Checkup, ...]
    facts: dict[str, Any]


def try_gpus(runtime_name: str, on_progress: Callable[[Progress], None]) -> TrialReport:
    """Run all trials on the GPUs that this host hands out; minutes.

    Args:
        runtime_name: as given to `--runtime`.
        on_progress: told which trial runs.

    Raises:
        UsageError: there is no such runtime; InfraError: it cannot be used here.
    """
    devices = host_devices(runtime_name)
    before = devices.inventory()
    facts: dict[str, Any] = {
        "schema": 1,
        "grader": __version__,
        "host": {"kernel": platform.release(), "machine": platform.machine(), "cores": len(before.cores)},
        "runtime": runtime_name,
        "engine": _engine() if runtime_name == "docker" else None,
        "gpus": [asdict(gpu) for gpu in before.gpus],
        "no_gpus": before.no_gpus,
        "trials": [],
    }
    if not before.offered:
        unfit = "; ".join(f"GPU {gpu.index}: {gpu.unfit}" for gpu in before.gpus)
        why = before.no_gpus or f"none is fit for use: {unfit}"
        return _report([Checkup("GPUs", False, True, why, "see `grader devices`")], facts)
    with open_runtime(runtime_name) as runtime:
        checkups = list(_try_all(runtime, before, on_progress, facts["trials"]))
    after = devices.inventory()
    # A runtime gives its last lease back when it is left: what is still in use now belongs to nobody.
    lost = [gpu.uuid for gpu in before.offered if gpu.uuid not in {one.uuid for one in after.offered}]
    checkups.append(
        Checkup(
            "GPUs afterwards",
            not lost,
            True,
            f"no longer fit: {', '.join(lost)}" if lost else "all fit",
            "see `grader devices`" if lost else "",
        )
    )
    facts["gpus_afterwards"] = [asdict(gpu) for gpu in after.gpus]
    return _report(checkups, facts)


def _report(checkups: Sequence[Checkup], facts: dict[str, Any]) -> TrialReport:
    return TrialReport(tuple(checkups), facts | {"checks": [asdict(checkup) for checkup in checkups]})


def _try_all(
    runtime: Runtime,
    inventory: Inventory,
    on_progress: Callable[[Progress], None],
    told: list[dict[str, Any]],
) -> Iterator[Checkup]:
    start, broken = time.monotonic(), ""
    for trial in TRIALS:
        num = len(inventory.offered)
        spent_s = time.monotonic() - start
        if num < trial.fewest_gpus:
            yield Checkup(trial.what, True, False, f"left out: it takes {trial.fewest_gpus} GPUs")
        elif broken and trial.most_gpus:
            yield Checkup(trial.what, False, False, f"left out: {broken} did not work")
        elif spent_s > _ALL_S - trial.wall_s:
            yield Checkup(trial.what, False, False, f"left out: {spent_s:.0f} s had gone by")
        else:

            def report(sign: Progress, what: str = trial.what) -> None:
                # Also while it waits for GPUs that others hold.
                if time.monotonic() - start > _ALL_S:
                    raise InfraError(f"not over after {_ALL_S:.0f} s ({sign.phase})")
                on_progress(replace(sign, phase=f"{what}: {sign.phase}"))

            checkup = _try_one(runtime, trial, min(num, trial.most_gpus), report, told)
            if not checkup.ok and trial.most_gpus and not broken:
                broken = trial.what
            yield checkup


def _try_one(
    runtime: Runtime,
    trial: Trial,
    num_gpus: int,
    on_progress: Callable[[Progress], None],
    told: list[dict[str, Any]],
) -> Checkup:
    num_ranks = max(1, num_gpus)
    limits = replace(LIMITS, wall_s=trial.wall_s, memory_bytes=_BYTES_OF_A_RANK * num_ranks)
    start = time.monotonic()
    facts: dict[str, Any] = {"what": trial.what}
    told.append(facts)
    with tempfile.TemporaryDirectory(prefix="grader-trial-") as folder:
        try:
            ran = run_script(
                runtime, Path(folder), trial.text,
                nproc_per_node=num_ranks, gpus_per_node=num_gpus, limits=limits, on_progress=on_progress,
            )  # fmt: skip
        except GraderError as error:
            facts |= {"seconds": round(time.monotonic() - start, 1), "error": str(error)}
            return Checkup(trial.what, False, True, str(error), "see `grader devices`")
        record = json.loads(ran.workspace.record.read_text(encoding="utf-8"))
        ranks = range(num_ranks)
        outcome = TrialOutcome(
            ran.record.ending,
            ran.record.ending_reason,
            tuple(record["environment"].get("lease", {}).get("gpus", ())),
            tuple(map(ran.out, ranks)),
            tuple(map(ran.err, ranks)),
        )
    seconds = round(time.monotonic() - start, 1)
    facts |= {"seconds": seconds, "record": record, "outputs": outcome.outputs, "errors": outcome.errors}
    if outcome.ending is not trial.ending:
        last = next((line for text in outcome.errors for line in reversed(text.splitlines()) if line), "")
        fault = f"{outcome.ending} instead of {trial.ending}: {outcome.reason or last}"[:_LONGEST_WORDS]
    else:
        fault = trial.fault(outcome)
    return Checkup(trial.what, not fault, True, fault or f"{outcome.ending}, {seconds:.0f} s")


def _engine() -> dict[str, Any] | str:
    from grader.run.engine.client import connect, engine_errors

    try:
        with closing(connect()) as client, engine_errors("The container engine did not describe itself"):
            told = client.info()
    except InfraError as error:
        return str(error)
    return {name: told.get(name) for name in _ENGINE_FACTS}
