"""Before the clock starts: does every GPU of a run do what its ranks will ask of it?

The driver's tables may look well where no program can compute: a driver too old for the libraries, a device that fell
off its bus, a container that lost its devices. A script would then end or go to the CPU, and the learner be blamed. So
one short child per GPU, as the ranks' user in the ranks' environment, makes a context, takes memory and multiplies;
where all can, they reduce over each other once. What a first use costs is paid here, too.

Everything goes through torch: it fails with the words that a script would have met. Runs nothing of a learner's.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from grader.launch.bounds import PREFLIGHT_S, kill_s
from grader.launch.ranks.environment import job_environment
from grader.launch.ranks.user import as_user, drop_to
from grader.launch.spec import LaunchSpec
from grader.launch.system.processes import die_with_parent, send

DEVICE_TYPE = "cuda"
_BACKENDS = {"cuda": "nccl", "cpu": "gloo"}
_TAKEN_BYTES = 64 << 20
_SIDE = 1024
_LONGEST_WORDS = 1000
_LOOK_S = 0.2
_VERSION_BYTES = 80
"""NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE."""


class UnfitDevicesError(Exception):
    """GPUs that must not be handed out again: `gpus`, their UUIDs; the text says what they failed to do."""

    def __init__(self, gpus: tuple[str, ...], reason: str) -> None:
        super().__init__(reason)
        self.gpus = gpus


class _DeviceChild:
    """One child and our ends of its pipes; forked as soon as it exists."""

    def __init__(self, spec: LaunchSpec, index: int) -> None:
        self.gpu = spec.gpus[index]
        self.told: list[dict[str, Any]] = []
        self._received = b""
        orders, self._orders = os.pipe()
        self.answers, answers = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _examine(spec, index, parent, orders, answers)
        os.close(orders)
        os.close(answers)

    def go_on(self) -> None:
        """Let it take its next step."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._orders, b"\n")

    def take(self) -> bool:
        """Take what it says; False where it has ended."""
        chunk = os.read(self.answers, 1 << 16)
        *lines, self._received = (self._received + chunk).split(b"\n")
        self.told += map(json.loads, lines)
        return bool(chunk)

    def end(self, deadline: float) -> bool:
        """Kill and bury it; whether it went in time."""
        send(self.pid, signal.SIGKILL)
        for descriptor in (self._orders, self.answers):
            os.close(descriptor)
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S / 20)
        return True


def look_at_devices(spec: LaunchSpec, stopped: Callable[[], bool]) -> list[dict[str, Any]]:
    """Have every GPU of this node used, each alone and then all together.

    Args:
        spec: the run, its folders made.
        stopped: asked meanwhile; True ends it.

    Returns:
        Per GPU, in the ranks' order: uuid, name, versions of driver, CUDA and NCCL, total and free bytes.

    Raises:
        UnfitDevicesError: a GPU failed, or all together.
        OSError: it was stopped.
    """
    children: list[_DeviceChild] = []
    try:
        for index in range(len(spec.gpus)):
            children.append(_DeviceChild(spec, index))
        _wait(children, stopped)
        if failed := [child for child in children if "error" in child.told[0]]:
            gpus = tuple(child.gpu for child in failed)
            raise UnfitDevicesError(gpus, f"nothing can be computed there: {failed[0].told[0]['error']}")
        facts = [child.told.pop(0)["facts"] for child in children]
        if len(children) > 1:
            for child in children:
                child.go_on()
            _wait(children, stopped)
            # Whose fault it is can't be told: the words are those of whoever noticed.
            if wrong := [child.told[0]["error"] for child in children if "error" in child.told[0]]:
                raise UnfitDevicesError(spec.gpus, f"an all-reduce over them failed: {wrong[0]}")
    finally:
        deadline = time.monotonic() + kill_s(len(spec.gpus))
        stuck = tuple(child.gpu for child in children if not child.end(deadline))
        # Only its owner may: root of a container has no more rights than it needs.
        with contextlib.suppress(OSError):
            as_user(spec.rank_uid, lambda: Path(_meeting_file(spec)).unlink(missing_ok=True))
    if stuck:
        raise UnfitDevicesError(stuck, f"a process on it outlived SIGKILL for {kill_s(1):.0f} s")
    return facts


def _wait(children: list[_DeviceChild], stopped: Callable[[], bool]) -> None:
    """Until each has said something; silence is an answer, too."""
    deadline = time.monotonic() + PREFLIGHT_S
    waiting = {child.answers: child for child in children}
    while waiting and time.monotonic() < deadline:
        if stopped():
            raise OSError("it was stopped before its ranks began")
        for descriptor in select.select(list(waiting), [], [], _LOOK_S)[0]:
            child = waiting[descriptor]
            if not child.take():
                child.told.append({"error": "its process ended without a word"})
            if child.told:
                del waiting[descriptor]
    for child in waiting.values():
        child.told.append({"error": f"no answer within {PREFLIGHT_S:.0f} s"})


def _examine(spec: LaunchSpec, index: int, parent: int, orders: int, answers: int) -> NoReturn:
    def tell(**words: Any) -> None:
        os.write(answers, json.dumps(words).encode() + b"\n")

    try:
        os.setsid()
        die_with_parent(parent)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        if spec.rank_uid and os.getuid() != spec.rank_uid:
            drop_to(spec.rank_uid, spec.rank_uid)
            die_with_parent(parent)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(null, descriptor)
        os.environ.clear()
        os.environ.update(job_environment(spec))
        tell(facts=_use(spec.gpus[index], index))
        os.read(orders, 1)
        _reduce(spec, index)
        tell(reduced=True)
        # Others may still read from this one's memory: it ends when all are through.
        os.read(orders, 1)
    except BaseException as error:  # noqa: BLE001
        words = f"{type(error).__name__}: {error}".strip()
        tell(error=words[:_LONGEST_WORDS])
    finally:
        os._exit(0)


def _device(index: int) -> Any:
    import torch

    return torch.device(DEVICE_TYPE, index if DEVICE_TYPE == "cuda" else 0)


def _use(uuid: str, index: int) -> dict[str, Any]:
    """Make a context, take memory and multiply; facts about the device."""
    import torch

    device = _device(index)
    facts = _facts(uuid, device)
    taken = torch.ones(_TAKEN_BYTES, dtype=torch.uint8, device=device)
    square = torch.ones(_SIDE, _SIDE, device=device)
    # Powers of two all the way, so that it is exact however it is computed.
    if (found := (square @ square).sum().item()) != _SIDE**3 or taken[-1].item() != 1:
        raise RuntimeError(f"a product of matrices came out as {found}, not {_SIDE**3}")
    return facts


def _facts(uuid: str, device: Any) -> dict[str, Any]:
    import torch

    if device.type != "cuda":
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return {"uuid": uuid, "name": device.type, "total_bytes": total, "free_bytes": total}
    properties = torch.cuda.get_device_properties(device)
    if not uuid.lower().endswith(str(properties.uuid).lower()):
        raise RuntimeError(f"in its place is GPU-{properties.uuid}")
    free, total = torch.cuda.mem_get_info(device)
    return {
        "uuid": uuid,
        "name": properties.name,
        "driver": _driver_version(),
        "cuda": torch.version.cuda or "",
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "total_bytes": total,
        "free_bytes": free,
    }


def _driver_version() -> str:
    """As the management library tells it; "" where it does not."""
    text = ctypes.create_string_buffer(_VERSION_BYTES)
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        nvml.nvmlInitWithFlags(0)
        nvml.nvmlSystemGetDriverVersion(text, _VERSION_BYTES)
    except (OSError, AttributeError):
        return ""
    return text.value.decode(errors="replace")


def _reduce(spec: LaunchSpec, index: int) -> None:
    """One all-reduce over all GPUs of this node."""
    import torch
    import torch.distributed as dist

    num, device = len(spec.gpus), _device(index)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    store = dist.FileStore(_meeting_file(spec), num)
    dist.init_process_group(_BACKENDS[device.type], store=store, rank=index, world_size=num)
    value = torch.full((_SIDE,), float(index + 1), device=device)
    dist.all_reduce(value)
    if (found := value.sum().item()) != _SIDE * num * (num + 1) / 2:
        raise RuntimeError(f"a sum over all GPUs came out as {found}")


def _meeting_file(spec: LaunchSpec) -> str:
    return f"{spec.scratch_dir}/tmp/preflight"
