"""The probe's entry points: `install` in a rank before the script, `finish` when the script has ended.

`install_everywhere` is for a script that starts its ranks itself, in the process that every other one comes from.

Neither ever raises, and neither changes what the script computes.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grader.probe.communication import collectives, flight_recorder, process_groups, traffic
from grader.probe.data import loader_passes
from grader.probe.files import checkpoint_loads, checkpoint_saves, downloads, opened_files
from grader.probe.gradients import backward_passes
from grader.probe.hooks import code_locations, sampling, transforms
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded, meet_compiler, meet_devices, replace
from grader.probe.models import (
    evaluation_passes,
    layouts,
    model_memory,
    tracked_models,
    trained_models,
    training_modes,
    unheld_parameters,
    wrappers,
)
from grader.probe.processes import child_processes, joining, random_states, seeds
from grader.probe.steps import device_steps, line_changes, lr_schedules, optimizers, updates
from grader.probe.trace import events
from grader.probe.trace.seals import Sealer
from grader.probe.trace.writer import clock, writer

OLDEST_TORCH = (2, 6)

_MAX_MESSAGE = 2000

_finished = False


@dataclass(frozen=True, slots=True)
class ProbedRank:
    """The rank that the probe is in.

    Attributes:
        rank: global rank; local_rank, world_size: as in the environment.
        seed: what the rank's generators were seeded with.
        submission_dir: folder whose files count as the script's.
        output_dir: folder that the script may write to.
        traced_steps: first and last optimizer step to be looked at line by line; None: the run counts.
    """

    rank: int
    local_rank: int
    world_size: int
    seed: int
    submission_dir: str
    output_dir: str
    traced_steps: tuple[int, int] | None = None


def install(
    here: ProbedRank,
    *,
    fd: int,
    origin: float,
    key: bytes | bytearray = b"",
    sampling_key: bytes | bytearray = b"",
    questions: int = -1,
) -> None:
    """Begin to write down what this process does.

    Args:
        here: the rank that this process is.
        fd: descriptor of the rank's own pipe to the supervisor.
        origin: the ranks' start on the system's monotonic clock, seconds.
        key: of this run: seals what is told (see `seals`); empty: nothing does.
        sampling_key: the same on all ranks: decides which steps are looked at (see `sampling`); empty: `key` does.
        questions: descriptor through which the supervisor asks for open collectives (see `flight_recorder`); -1: nobody
            asks.
    """
    try:
        writer.open(fd, origin, Sealer(key, here.rank) if key else None)
        writer.write(
            events.START,
            torch=_torch_version(),
            python=platform.python_version(),
            rank=here.rank,
            local_rank=here.local_rank,
            world_size=here.world_size,
            pid=os.getpid(),
            seed=here.seed,
            probe=events.VERSION,
        )
    except Exception:  # noqa: BLE001  # without a pipe there is nobody to tell
        return
    if questions >= 0:
        _try("flight recorder", lambda: flight_recorder.install(questions))
    _hook(here, sampling_key or key)


def install_everywhere(here: ProbedRank, join: joining.Join, *, key: bytes | bytearray = b"") -> None:
    """Begin to keep what this process and those that it forks do, until each is known to be a rank or not.

    Args:
        here: what all of them share; rank and seed are this process's.
        join: see `joining`.
        key: as `install` has it.
    """
    try:
        writer.gather(clock(), joining.join)
        sealers = [Sealer(key, rank) if key else None for rank in range(here.world_size)]
        joining.install(join, sealers, finish_once)
    except Exception:  # noqa: BLE001  # without memory there is nothing to keep
        return
    _hook(here, key)


def _hook(here: ProbedRank, sampling_key: bytes | bytearray) -> None:
    counters.step_ended = writer.origin
    code_locations.set_root(here.submission_dir)
    sampling.install(sampling_key)
    replace([os], "_exit", _tell_before)
    _try("files", lambda: opened_files.install(here.output_dir))
    _try("processes", child_processes.install)
    version = _torch_version()
    if not _supported(version):
        needed = ".".join(map(str, OLDEST_TORCH))
        writer.write(
            events.UNSUPPORTED, reason=f"torch {needed} or newer is needed, this is {version or 'none'}"
        )
        return
    _try("compiler", meet_compiler)
    _try("devices", meet_devices)
    _try("transforms", transforms.install)
    for module in (
        tracked_models,
        loader_passes,
        backward_passes,
        optimizers,
        updates,
        wrappers,
        process_groups,
        layouts,
        collectives,
        checkpoint_saves,
        checkpoint_loads,
        downloads,
        model_memory,
        seeds,
        random_states,
        lr_schedules,
        training_modes,
    ):
        _try(module.__name__.rpartition(".")[2], module.install)
    steps = here.traced_steps
    if steps is not None:
        _try("lines", lambda: line_changes.install(*steps))


def finish(error: BaseException | None) -> None:
    """Write down how the script ended: its exception, or the parameters that it leaves.

    Args:
        error: what the script raised, `SystemExit` included; None where it ran to its end.
    """
    global _finished
    _finished = True  # whoever calls this twice tells two ends, which shows
    failed = error is not None and not (isinstance(error, SystemExit) and error.code in (None, 0))
    if failed and error is not None:
        _exception(error)
    if _supported(_torch_version()):
        _try("passes", loader_passes.close)
        if not failed:
            _try("updates", updates.close)
        # After an exception ranks stop at different places, so that their parameters can't be compared.
        _try("models", evaluation_passes.end if failed else trained_models.write_finals)
        if not failed:
            unheld_parameters.write()
    _end()


def finish_once(error: BaseException | None) -> None:
    """`finish`, where this process is a rank that has not told its end."""
    if writer.here() and not writer.gathering and not _finished:
        finish(error)


def _tell_before(leave: Callable[[int], Any]) -> Callable[[int], Any]:
    """Who leaves by `os._exit` has come to the end as well: a trace that just stops is another matter."""

    @functools.wraps(leave)
    def _exit(status: int) -> Any:
        finish_once(SystemExit(status))
        return leave(status)

    return _exit


def _try(name: str, action: Callable[[], Any]) -> None:
    guarded(name)(action)()


@guarded("exception")
def _exception(error: BaseException) -> None:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  # the script's own exception class, with a broken __str__
        message = ""
    writer.write(
        events.EXCEPTION,
        type=type(error).__name__,
        message=message[:_MAX_MESSAGE],
        frames=code_locations.of_traceback(error.__traceback__),
    )


@guarded("end")
def _end() -> None:
    traffic.tell()
    torch = sys.modules.get("torch")
    on_device = torch is not None and torch.cuda.is_initialized()
    writer.write(
        events.END,
        steps=counters.steps,
        backwards=counters.backwards,
        forwards=counters.forwards,
        derivatives=counters.all_derivatives,
        elsewhere=counters.elsewhere,
        group_destroyed=process_groups.destroyed(),
        sequence=process_groups.sequence() if torch is not None else None,
        later=device_steps.told_at_end() or None,
        peak_device_bytes=torch.cuda.max_memory_allocated() if torch is not None and on_device else None,
    )


def _torch_version() -> str:
    try:
        import torch
    except ImportError:
        return ""
    return str(torch.__version__)


def _supported(version: str) -> bool:
    numbers = []
    for part in version.split(".")[:2]:
        numbers.append(int(part) if part.isdigit() else 0)
    return tuple(numbers) >= OLDEST_TORCH
