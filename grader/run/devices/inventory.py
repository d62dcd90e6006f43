"""Take stock of this host: its GPUs and the cores this process may use, as they are right now.

Never raises for a host that has no GPU or no driver; that is an answer, with its reason.
"""

from __future__ import annotations

from grader.run.devices.cores import read_cores
from grader.run.devices.hardware import Inventory
from grader.run.devices.nvml import read_gpus


def take_inventory() -> Inventory:
    """What there is; asks the driver afresh each time, so that a GPU that fell ill is noticed."""
    gpus, no_gpus = read_gpus()
    return Inventory(gpus, read_cores(), no_gpus)
