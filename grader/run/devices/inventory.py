"""Take stock of this host: its GPUs and the cores this process may use, as they are right now.

Never raises for a host that has no GPU or no driver; that is an answer, with its reason.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from grader.run.devices.allocation import read_allocation
from grader.run.devices.cores import read_cores
from grader.run.devices.driver_query import ask_driver
from grader.run.devices.hardware import Gpu, Inventory
from grader.run.devices.last_answer import recall, remember
from grader.settings import settings


def take_inventory(folder: Path, *, gpus: bool = True) -> Inventory:
    """What there is; asks the driver afresh each time, so that a GPU that fell ill is noticed.

    Args:
        folder: of the lease book, where the driver's last answer is kept as well.
        gpus: whether to ask the driver at all, which may take seconds.
    """
    if not gpus:
        return Inventory((), read_cores(), "nobody asked the driver")
    answer, last = ask_driver(), recall(folder)
    if not answer.gpus:
        no_gpus = f"{answer.no_gpus}; {last}" if last.gpus else answer.no_gpus
        return Inventory((), read_cores(), no_gpus, answer.hangs)
    remember(folder, last, answer.gpus)
    allocation, seen = read_allocation(), last.complete(answer.gpus)
    ours = seen if allocation is None else allocation.own_gpus(seen)
    return Inventory(tuple(_of_our_model(gpu) for gpu in ours), read_cores())


def _of_our_model(gpu: Gpu) -> Gpu:
    wanted = settings().gpu_model
    if wanted.lower() in gpu.name.lower():
        return gpu
    return replace(gpu, unfit=gpu.unfit or f"GRADER_GPU_MODEL={wanted} leaves it to others")
