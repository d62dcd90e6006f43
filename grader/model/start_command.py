"""The command by which a script is started, as a learner would type it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from grader.model.launch_arguments import fill_in


def start_command(
    launcher: str, entry_point: str, arguments: Sequence[str], nproc_per_node: int | None, nnodes: int = 1
) -> str:
    """`torchrun --nproc_per_node=2 train.py --epochs 20`, or `python train.py …` of a script that starts its ranks.

    Args:
        launcher, entry_point: as the task has them.
        arguments: of the script; where the number of ranks stands in them, it is filled in.
        nproc_per_node: None: that is yet to be said.
        nnodes: of the run.
    """
    ranks = "N" if nproc_per_node is None else str(nproc_per_node)
    world = "N" if nproc_per_node is None else str(nproc_per_node * nnodes)
    known = {"{nproc}": ranks, "{nnodes}": str(nnodes), "{world_size}": world}
    if nnodes == 1:
        known |= {"{node_rank}": "0", "{master_addr}": "127.0.0.1"}
    filled = [
        shlex.quote(text) if "{" not in text else text
        for text in (fill_in(argument, known) for argument in arguments)
    ]
    if launcher == "python":
        return " ".join(("python", entry_point, *filled))
    nodes = (f"--nnodes={nnodes}",) if nnodes > 1 else ()
    return " ".join(("torchrun", f"--nproc_per_node={ranks}", *nodes, entry_point, *filled))
