"""What a run on GPUs is allowed beyond one without: time to end, time to begin, processes.

A process that holds GPUs takes long to go: a kernel that hangs, mappings of other GPUs' memory, a driver that winds
down because nobody else uses it. Without GPUs, what outlives a few seconds is stuck.
"""

from __future__ import annotations

PREFLIGHT_S = 60.0
"""Of each half of a look at the devices: a driver may have to start, and gigabytes of libraries come from a disk."""
_ANSWER_S = 12.0
_PROCESSES = 512
_OWN_PROCESSES, _PROCESSES_PER_GPU = 128, 256


def kill_s(num_gpus: int) -> float:
    """Seconds within which what was killed has to be gone."""
    return 30.0 if num_gpus else 5.0


def stop_s(num_gpus: int) -> float:
    """Seconds within which a supervisor that was told to stop has to be through."""
    return kill_s(num_gpus) + (5.0 if num_gpus else 0.0)


def other_nodes_s(num_gpus: int) -> float:
    """Seconds that a node waits for the others before its ranks start: they look at their devices first, too."""
    return 30.0 + (2 * PREFLIGHT_S if num_gpus else 0.0)


def answer_s(num_gpus: int) -> float:
    """Seconds beyond a run's wall limit after which a supervisor without an answer is taken for hung."""
    return _ANSWER_S + (2 * PREFLIGHT_S + 2 * kill_s(num_gpus) if num_gpus else 0.0)


def most_processes(num_gpus: int) -> int:
    """Processes and threads of one node: the libraries of each rank on a GPU have dozens, and so have compilers."""
    return max(_PROCESSES, _OWN_PROCESSES + _PROCESSES_PER_GPU * num_gpus)
