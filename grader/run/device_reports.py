"""What the inside of a run tells of its GPUs: what they are, or that they do not do what they must.

The second never lets a run begin and is no learner's fault: the GPUs go into quarantine, and the attempt elsewhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from grader.errors import InfraError
from grader.run.devices.leases import Devices


class DeviceFaultError(InfraError):
    """GPUs that failed: `gpus`, their UUIDs; `fault`: what they failed to do."""

    def __init__(self, gpus: tuple[str, ...], fault: str) -> None:
        super().__init__(
            f"{', '.join(gpus)}: {fault}. Kept from further runs until `grader devices --release` lets it back."
        )
        self.gpus = gpus
        self.fault = fault


class DeviceReports:
    """Takes the reports of a run's nodes, for its record."""

    def __init__(self) -> None:
        self._of_node: dict[int, list[dict[str, Any]]] = {}

    def take(self, event: dict[str, Any], node: int = 0) -> bool:
        """Take an event if it is about devices.

        Raises:
            DeviceFaultError: they failed.
        """
        match event.get("event"):
            case "devices":
                self._of_node[node] = list(event["devices"])
            case "unfit_devices":
                raise DeviceFaultError(tuple(map(str, event["gpus"])), str(event["reason"]))
            case _:
                return False
        return True

    @property
    def devices(self) -> list[dict[str, Any]]:
        """Those of all nodes, in the order of the ranks."""
        return [device for _node, devices in sorted(self._of_node.items()) for device in devices]


@contextlib.contextmanager
def quarantining(devices: Devices) -> Iterator[None]:
    """Keep GPUs that fail meanwhile from everybody, before whoever holds them gives them back."""
    try:
        yield
    except DeviceFaultError as error:
        for gpu in error.gpus:
            devices.quarantine(gpu, error.fault)
        raise
