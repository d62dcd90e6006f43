"""The environment of a rank: torchrun's variables, folders of its own, and nothing else.

What is not listed here does not reach a learner's script: no token, no address of a service.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from grader.launch.spec import LaunchSpec

# Where a machine keeps its GPU libraries: needed to compute, says nothing about anybody.
_PASSED_ON = ("LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
_DEVICE_LISTS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment() -> dict[str, str]:
    """What the fork server itself may know: the way to Python, a language, one thread."""
    bindir = str(Path(sys.executable).parent)
    environment = {
        "PATH": f"{bindir}:{_SYSTEM_PATH}",
        "LANG": "C.UTF-8",
        "USER": "learner",
        "OMP_NUM_THREADS": "1",
        # A look at the driver's tables instead of a CUDA context, which no process could fork from.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    }
    return environment | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


def job_environment(spec: LaunchSpec) -> dict[str, str]:
    """What all ranks of a run share, and what the torchrun command is started with."""
    scratch = spec.scratch_dir
    size = {"MODEL_SIZE": spec.model_size} if spec.model_size else {}
    # What a site sets comes first, so that nothing of ours is ever another than we say.
    return (
        clean_environment()
        | dict(spec.variables)
        | _devices(spec)
        | {
            "HOME": scratch,
            "TMPDIR": f"{scratch}/tmp",
            "MPLCONFIGDIR": f"{scratch}/matplotlib",
            "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
            "TRITON_CACHE_DIR": f"{scratch}/triton",
            "GLOO_SOCKET_IFNAME": spec.interface,
            # Without the sign any interface would do whose name begins so.
            "NCCL_SOCKET_IFNAME": f"={spec.interface}",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
            "DATA_DIR": spec.data_dir,
            "OUTPUT_DIR": spec.output_dir,
            **size,
        }
    )


def own_names() -> frozenset[str]:
    """Names of what `job_environment` sets, which no site can set otherwise."""
    nothing = LaunchSpec("", "fork", 1, "", (), "", "", "", "", "", 1.0)
    return frozenset(job_environment(nothing))


def _devices(spec: LaunchSpec) -> dict[str, str]:
    # A run without GPUs sees none, whatever the machine has: what it is judged by must not hang on that.
    if spec.gpus:
        return {"CUDA_VISIBLE_DEVICES": ",".join(spec.gpus)}
    return dict.fromkeys(_DEVICE_LISTS, "")


def prepare_folders(spec: LaunchSpec) -> None:
    """Make the folders that `job_environment` names."""
    for name in ("tmp", "matplotlib", "inductor", "triton"):
        Path(spec.scratch_dir, name).mkdir(mode=0o700, exist_ok=True)


def rank_environment(spec: LaunchSpec, rank: int, port: int) -> dict[str, str]:
    """One rank's whole environment, name for name what torchrun would set.

    Args:
        spec: the run; rank: global rank; port: where the rendezvous store listens.
    """
    world, local = str(spec.world_size), str(spec.local_rank(rank))
    variables = {
        "RANK": str(rank),
        "LOCAL_RANK": local,
        "GROUP_RANK": str(spec.node_rank),
        "ROLE_RANK": str(rank),
        "ROLE_NAME": "default",
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": str(spec.nproc_per_node),
        "GROUP_WORLD_SIZE": str(spec.nnodes),
        "ROLE_WORLD_SIZE": world,
        "MASTER_ADDR": spec.master_addr,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": spec.attempt,
        # The rendezvous store lives outside the ranks, as torchrun's agent keeps it (see `store`).
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_ERROR_FILE": f"{spec.scratch_dir}/tmp/error{rank}.json",
    }
    if _torchrun_tells_signals():
        variables["TORCHELASTIC_SIGNALS_TO_HANDLE"] = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    return job_environment(spec) | variables


def _torchrun_tells_signals() -> bool:
    # Newer versions only; the launcher's own configuration says which one this is.
    from torch.distributed.launcher.api import LaunchConfig

    return hasattr(LaunchConfig, "signals_to_handle")
