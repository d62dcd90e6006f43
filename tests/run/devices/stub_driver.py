"""A machine's NVIDIA driver, simulated: its library is real code that the real binding loads, see nvml_stub.c."""

from __future__ import annotations

from pathlib import Path

from tests.c_compiler import compile_c


class StubDriver:
    """One simulated driver; its GPUs may change at any time, as everybody who asks reads them anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._gpus = folder / "gpus"
        compile_c(Path(__file__).with_name("nvml_stub.c"), to=folder / "libnvidia-ml.so.1")

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
