"""What of a host may be handed out just now: its inventory, less what book, torch and strangers on it speak against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.errors import InfraError
from grader.run.devices.fitness import keep_others, keep_quarantine, keep_torch
from grader.run.devices.hardware import Inventory
from grader.run.devices.lease_book import LeaseBook, read_book
from grader.run.devices.torch_build import TorchBuild


@dataclass(frozen=True, slots=True)
class Stock:
    """Where and whom to ask.

    Attributes:
        folder: of the lease book.
        inventory: says what is there, GPUs only where its argument says so.
        torch_build: says what GPUs are to be fit for, None where nobody knows; asked only where there are GPUs.
    """

    folder: Path
    inventory: Callable[[bool], Inventory]
    torch_build: Callable[[], TorchBuild | None]

    def take(self, *, gpus: bool) -> Inventory:
        """What is there; what must not be handed out is unfit, with the reason."""
        # Who takes or gives back a GPU while the driver is asked is no stranger on it.
        before = self._book()
        found = self.inventory(gpus)
        if not found.gpus:
            return found
        book = self._book()
        found = keep_torch(keep_others(found, before.held_gpus | book.held_gpus), self.torch_build())
        return keep_quarantine(found, book.quarantined)

    def _book(self) -> LeaseBook:
        # One that is damaged is told to those who want to lease; to look goes without.
        try:
            return read_book(self.folder)
        except InfraError:
            return LeaseBook(self.folder)
