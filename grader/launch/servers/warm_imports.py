"""What a process imports before a script may run in it: so much that the script's own imports cost next to nothing."""

from __future__ import annotations

import contextlib
import importlib
import weakref

from grader.launch.servers.gc_freeze import gc_frozen

# Whatever a training script is likely to import, as long as importing it starts nothing.
_WARM = (
    "numpy",
    "torch",
    "torch._dynamo",
    "torch.distributed",
    "torch.distributed.launcher.api",
    "torch.nn.parallel",
    "torch.optim",
    "torch.utils.data.distributed",
    "torchvision",
    "torchvision.datasets",
    "torchvision.transforms",
    "grader.probe.install",
)
_WARM_IF_THERE = ("safetensors.torch",)


def import_everything(*more: str) -> None:
    """Import what scripts need, and the modules named besides; the garbage collector will never look at any of it."""
    with gc_frozen():
        for name in (*_WARM, *more):
            importlib.import_module(name)
        for name in _WARM_IF_THERE:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        _forget_teardown()


def _forget_teardown() -> None:
    # Libraries unregister their operators when the interpreter ends: 30 ms and more per rank, for memory that the
    # kernel takes back at once. What a script registers later still runs.
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False
