"""Look at this machine and say what it can run, what is missing, and how to get it. Changes nothing."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.errors import GraderError
from grader.settings import settings

OLDEST_TORCH = (2, 6)
"""The probe's hooks exist from here on."""
ENOUGH_SHM_BYTES = 256 << 20
"""DataLoader workers and gloo share batches through /dev/shm; less than this and they fail oddly."""

_INSTALL = "python -m pip install 'ddp-grader[judge]' (in a clone: make setup)"

ENGINE_S = 5.0
"""A container engine that is slower than this is of no use."""


@dataclass(frozen=True, slots=True)
class Checkup:
    """One thing looked at.

    Attributes:
        what: name of the thing.
        ok: True when it is there and good.
        needed: False for what only some uses need.
        found: what was seen.
        remedy: what to do about it, "" when ok.
    """

    what: str
    ok: bool
    needed: bool
    found: str
    remedy: str = ""


def diagnose() -> tuple[Checkup, ...]:
    """Look at everything; quick, nothing is started for longer than a self-test, nothing is left.

    What cannot even be looked at is told, too: whoever asks has a machine on which something does not work. Where a
    setting is wrong, nothing is asked that depends on settings.
    """
    found = _looked_at({"settings": _settings, "Python": _python, "extras": _extras})
    if not found[0].ok:
        return found
    return found + _looked_at(
        {
            "machine": _machine,
            "devices": _devices,
            "runtimes": _runtimes,
            "containers": _containers,
            "data": _data,
            "tasks": _tasks,
        }
    )


def _looked_at(sections: dict[str, Callable[[], Iterator[Checkup]]]) -> tuple[Checkup, ...]:
    found: list[Checkup] = []
    for what, look in sections.items():
        try:
            found.extend(look())
        except Exception as error:  # noqa: BLE001 - the others are to be told all the same
            found.append(Checkup(what, False, True, "cannot be looked at", _said(error)))
    return tuple(found)


def _said(error: Exception) -> str:
    """What an error says to do."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed: {_INSTALL}"
    return str(error) if isinstance(error, GraderError) else f"{type(error).__name__}: {error}"


def _settings() -> Iterator[Checkup]:
    try:
        tasks = settings().tasks_dir
    except GraderError as error:
        yield Checkup("settings", False, True, "cannot be read", str(error))
    else:
        yield Checkup("settings", True, True, f"tasks in {tasks}")


def _python() -> Iterator[Checkup]:
    version = platform.python_version()
    yield Checkup(
        "Python",
        sys.version_info >= (3, 11),
        True,
        version,
        "" if sys.version_info >= (3, 11) else "install 3.11 or newer",
    )
    # Where submissions run and are scored in containers, torch is in there and need not be here.
    try:
        needed = settings().runtime == "process"
    except GraderError:
        needed = True
    for name in ("torch", "torchvision"):
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Checkup(name, False, needed, "not installed", _INSTALL)
            continue
        old = name == "torch" and tuple(int(part) for part in found.split(".")[:2]) < OLDEST_TORCH
        yield Checkup(name, not old, needed, found, "the probe needs torch 2.6 or newer" if old else "")
        if name == "torch":
            yield from _torchrun()


def _torchrun() -> Iterator[Checkup]:
    """The command that learners start scripts with; the grader's own `--cold` names its module to Python instead."""
    beside = Path(sys.executable).with_name("torchrun")
    if beside.is_file():
        yield Checkup("torchrun", True, False, str(beside))
        return
    elsewhere = shutil.which("torchrun")
    found = f"of another Python: {elsewhere}" if elsewhere else "not installed"
    remedy = (
        f"write `{sys.executable} -m torch.distributed.run` for it, as --cold does, or install torch anew"
    )
    yield Checkup("torchrun", False, False, found, remedy)


def _machine() -> Iterator[Checkup]:
    shm = shutil.disk_usage("/dev/shm")
    small = shm.free < ENOUGH_SHM_BYTES
    yield Checkup(
        "shared memory",
        not small,
        False,
        f"{shm.free >> 20} MiB free in /dev/shm",
        "make /dev/shm larger (in Docker: --shm-size=1g)" if small else "",
    )
    state = settings().state_dir
    parent = next(p for p in (state, *state.parents) if p.exists())
    writable = os.access(parent, os.W_OK)
    yield Checkup(
        "state folder",
        writable,
        True,
        str(state),
        "" if writable else "set GRADER_STATE_DIR to a folder you may write to",
    )


def _devices() -> Iterator[Checkup]:
    from grader.run.devices.allocation import read_allocation
    from grader.run.devices.hardware import cpu_list
    from grader.run.host_devices import host_devices

    devices = host_devices()
    inventory = devices.inventory()
    cores = len(inventory.cores)
    yield Checkup(
        "CPU cores",
        cores >= 2,
        False,
        f"{cores} (CPUs {cpu_list([cpu for core in inventory.cores for cpu in core.cpus])})",
        "" if cores >= 2 else "two ranks share one core: right, but slow, and scaling shows nothing",
    )
    names = Counter(f"{gpu.name or 'nameless'} (driver {gpu.driver or '?'})" for gpu in inventory.offered)
    yield Checkup(
        "NVIDIA GPUs",
        bool(inventory.offered),
        False,
        ", ".join(f"{num} × {name}" for name, num in names.items())
        or inventory.no_gpus
        or "none is fit for use",
        "" if inventory.offered else "only cpu profiles can be judged here",
    )
    for gpu in inventory.gpus:
        if gpu.unfit:
            yield Checkup(f"GPU {gpu.index}", False, False, f"not handed out: {gpu.unfit}", gpu.uuid)
        elif gpu.notes:
            yield Checkup(f"GPU {gpu.index}", True, False, "; ".join(gpu.notes))
    if (allocation := read_allocation()) is not None:
        problems = tuple(allocation.problems(inventory, len(os.sched_getaffinity(0))))
        share = f"job {allocation.job_id}: {allocation.num_gpus} GPUs, {allocation.num_cpus} CPUs"
        yield Checkup("Slurm", not problems, False, share, "; ".join(problems))
    try:
        states = Counter(entry.state for entry in devices.listing())
    except GraderError as error:
        yield Checkup("leases", False, True, "can't be read", str(error))
    else:
        yield Checkup("leases", True, False, f"{states['holds']} held, {states['waits']} waiting")


def _runtimes() -> Iterator[Checkup]:
    from grader.run.registry import find_runtimes

    # Of one name, the grader's own comes first, and a package's is refused.
    names = set[str]()
    for entry in find_runtimes():
        what = f"runtime {entry.name}" + (f" ({entry.package})" if entry.package else "")
        needed = entry.name == settings().runtime and entry.name not in names
        names.add(entry.name)
        try:
            availability = entry.self_test()
        except Exception as error:  # noqa: BLE001 - the other runtimes are to be told all the same
            yield Checkup(what, False, needed, "refused", _said(error))
            continue
        remedy = "" if availability.usable else "see the reason"
        yield Checkup(what, availability.usable, needed, availability.reason, remedy)


def _containers() -> Iterator[Checkup]:
    from grader.run.engine.client import connect, engine_errors
    from grader.run.engine.gpu_access import gpu_access, why_no_gpus
    from grader.run.host_devices import host_devices
    from grader.run.images import BUILD, image_states

    try:
        client = connect(ENGINE_S)
        with contextlib.closing(client), engine_errors("The container engine did not describe itself"):
            engine = client.info()
        states = image_states()
    except GraderError as error:
        remedy = "install and start Docker, or name its socket in DOCKER_HOST"
        yield Checkup("container engine", False, False, str(error), remedy)
        return
    seccomp = any(option.startswith("name=seccomp") for option in engine.get("SecurityOptions") or ())
    yield Checkup(
        "container engine",
        seccomp,
        False,
        f"{engine['ServerVersion']}, cgroup v{engine.get('CgroupVersion', '1')}, {engine['Driver']}, "
        f"{'seccomp' if seccomp else 'no seccomp'}",
        "" if seccomp else "submissions are not run without seccomp: use an engine and kernel that have it",
    )
    if gpus := [gpu.uuid for gpu in host_devices().inventory().offered]:
        why, remedy = why_no_gpus(engine, gpus)
        found = why or f"asked for by {gpu_access(engine)}; `grader doctor --gpu` tries it"
        yield Checkup("GPUs in containers", not why, False, found, remedy)
    for image in states:
        present = image.state == "present"
        size = f", {image.size_bytes / 1e9:.1f} GB" if image.size_bytes is not None else ""
        remedy = "" if present else BUILD
        yield Checkup(f"image {image.kind}", present, False, f"{image.name}: {image.state}{size}", remedy)


def _data() -> Iterator[Checkup]:
    from grader.catalog.data import own_datasets
    from grader.catalog.data.datasets import data_command, dataset_names, prepared
    from grader.catalog.tasks.task_folders import tasks_with_own_data

    sets = {name: (prepared(name), data_command(name)) for name in dataset_names()}
    with contextlib.suppress(GraderError):
        for task in tasks_with_own_data():
            sets[task.datasets[0]] = own_datasets.prepared(task), own_datasets.own_command(task)
    for name, (found, command) in sets.items():
        if found is None:
            yield Checkup(f"data set {name}", False, False, "not prepared", f"`{command}`")
        else:
            yield Checkup(f"data set {name}", True, False, found.sizes)


def _tasks() -> Iterator[Checkup]:
    from grader.catalog.tasks.task_folders import find_tasks, load_task

    names = find_tasks()
    if not names:
        remedy = "`grader new course NAME` makes a course, `grader new task NAME` a task of one"
        yield Checkup("tasks", False, True, f"none in {settings().tasks_dir}", remedy)
    for name in names:
        try:
            task = load_task(name)
        except GraderError as error:
            yield Checkup(f"task {name}", False, True, "has mistakes", str(error))
        else:
            yield Checkup(f"task {name}", True, True, task.title)


def _extras() -> Iterator[Checkup]:
    compiler = shutil.which("g++") or shutil.which("clang++")
    yield Checkup(
        "C++ compiler",
        compiler is not None,
        False,
        compiler or "not found",
        "" if compiler else "submissions that call torch.compile will fail",
    )
