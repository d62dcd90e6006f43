"""A machine's NVIDIA driver, simulated: its library is real code that the real binding loads, see nvml_stub.c."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


class StubDriver:
    """One simulated driver; its GPUs may change at any time, as everybody who asks reads them anew."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            pytest.skip("no C compiler for a driver's library")
        self.folder = folder
        self._gpus = folder / "gpus"
        source = Path(__file__).with_name("nvml_stub.c")
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", folder / "libnvidia-ml.so.1", source],
            check=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        """What processes need that are to meet it."""
        return {"LD_LIBRARY_PATH": str(self.folder), "STUB_GPUS": str(self._gpus)}

    def shows(self, gpus: str) -> None:
        """From now on it has these GPUs, by their condition: `ok,lost,mig`."""
        # In one step: somebody may be asking.
        half = self._gpus.with_suffix(".half")
        half.write_text(gpus)
        half.replace(self._gpus)
