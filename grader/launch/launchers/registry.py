"""Which launcher starts the ranks of a run."""

from __future__ import annotations

from grader.launch.launchers.interpreter import InterpreterLauncher
from grader.launch.launchers.launcher import ForkLauncher, Launcher
from grader.launch.launchers.python_launcher import PythonLauncher
from grader.launch.launchers.torchrun import TorchrunLauncher
from grader.launch.ranks.rank_process import RankProcess
from grader.launch.ranks.seal_key import SealKey
from grader.launch.spec import LaunchSpec


def launcher_of(spec: LaunchSpec, ranks: list[RankProcess], store_port: int, key: SealKey) -> Launcher:
    """The launcher that the spec names, for these ranks, which meet at the store on `store_port`."""
    if spec.launcher == "torchrun":
        return TorchrunLauncher(spec, ranks, key)
    if spec.launcher == "python":
        return PythonLauncher(spec, ranks, key)
    launcher = InterpreterLauncher if spec.launcher == "interpreter" else ForkLauncher
    return launcher(spec, ranks, store_port, key)
