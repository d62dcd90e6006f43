"""The settings of both containers, in one place to be read: what a learner's code may do, and what the scorer may.

Pure: builds arguments for the engine, calls nothing.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docker.types import LogConfig, Ulimit

from grader.launch.bounds import most_processes
from grader.launch.servers.container_server import (
    DATA,
    JUDGE_GID,
    ON_NETWORK,
    OUT,
    PREPARED,
    RECORD,
    SCRATCH,
    WORK,
)
from grader.run.engine.gpu_access import GpuAccess, device_requests
from grader.settings import settings

HOSTNAME = "job"
SUPERVISOR_BYTES = 768 << 20
"""Room for the fork server, the supervisor and the store, on top of what the ranks may use."""
_SCORER_BYTES = 4 << 30
_CPU_SHARES = 256
"""Where cores are scarce, learners' code gets a quarter of a process's share: pages and workers go first."""
_FILE_BYTES = 1 << 30
_RECORD_BYTES = 512 << 20
_LOCAL_TMPFS = {"type": "tmpfs", "device": "tmpfs"}


@dataclass(frozen=True, slots=True)
class PairKey:
    """What two pairs must share for one to do as well as the other.

    Attributes:
        train_image, evaluate_image: names with tags.
        data_volume: what all runs on these data share of the visible side.
        visible_volume, hidden_volume: both sides for the scorer, "" where nothing is scored.
        memory_bytes, output_bytes: limits of one node.
        gpus: UUIDs of the devices of all nodes, as many for each; how_gpus: the way they are asked for.
        cpus: CPUs of the ranks' containers as the kernel writes them, "" for all. With devices they are given when a
            container is made: an engine that changes a container's limits later may take its devices away, see
            `ContainerPair.pin`.
        nnodes: containers that run ranks.
    """

    train_image: str
    evaluate_image: str
    data_volume: str
    visible_volume: str
    hidden_volume: str
    memory_bytes: int
    output_bytes: int
    gpus: tuple[str, ...] = ()
    how_gpus: GpuAccess = GpuAccess.HOOK
    cpus: str = ""
    nnodes: int = 1

    def gpus_of(self, node: int) -> tuple[str, ...]:
        """Devices of one node."""
        each = len(self.gpus) // self.nnodes
        return self.gpus[node * each : (node + 1) * each]


def output_volume(output_bytes: int, uid: int) -> dict[str, Any]:
    """Where ranks leave what is to be kept: memory with a cap on bytes and names, gone with the last container."""
    options = f"size={output_bytes},nr_inodes=4096,nosuid,nodev,noexec,uid={uid},gid={uid},mode=0700"
    return {"driver": "local", "driver_opts": {**_LOCAL_TMPFS, "o": options}}


def record_volume() -> dict[str, Any]:
    """Where the supervisor writes; ranks have no way in, the scorer's group may read."""
    options = f"size={_RECORD_BYTES},nr_inodes=20000,nosuid,nodev,noexec,uid=0,gid={JUDGE_GID},mode=2750"
    return {"driver": "local", "driver_opts": {**_LOCAL_TMPFS, "o": options}}


def attempt_network() -> dict[str, Any]:
    """The network between the nodes of one attempt, and nothing else on it.

    `internal` alone leaves the host reachable: its bridge would have an address there, and whatever listens on all
    addresses of the host would answer. Without that address the way out that containers are given leads nowhere.
    """
    options = {"com.docker.network.bridge.inhibit_ipv4": "true"}
    return {"driver": "bridge", "internal": True, "enable_ipv6": False, "options": options}


def train_container(
    key: PairKey, uid: int, volumes: tuple[str, str], network: str | None = None, node: int = 0
) -> dict[str, Any]:
    """Container A: the learner's code under the supervisor.

    Args:
        key: image, data and limits.
        uid: user of the ranks.
        volumes: names of the output and the record volume.
        network: name of the attempt's own network where there are several nodes; None: no network at all.
        node: number of the node that this container is.
    """
    output, record = volumes
    memory = key.memory_bytes + SUPERVISOR_BYTES
    mounts = {output: {"bind": OUT, "mode": "rw"}, record: {"bind": RECORD, "mode": "rw"}}
    if key.data_volume:
        mounts[key.data_volume] = {"bind": PREPARED, "mode": "ro"}
    own = f"uid={uid},gid={uid}"
    # Not `network_disabled`: that would empty /etc/hosts, and torchrun would look for names for minutes.
    wired: dict[str, Any] = {"network_mode": "none", "hostname": HOSTNAME}
    # Both forms: gloo asks for the name of the second one, too.
    wired["extra_hosts"] = [f"{HOSTNAME}:127.0.0.1", f"{HOSTNAME}:::ffff:127.0.0.1"]
    if network is not None:
        # The engine answers for the names of the nodes and asks others for the rest, from the host itself where its
        # resolver is on loopback (CVE-2024-29018): the container's own loopback has none, and refuses at once.
        wired = {"network": network, "hostname": f"node{node}", "dns": ["127.0.0.1"]}
        wired["dns_opt"] = ["use-vc", "timeout:1", "attempts:1"]
    return (
        _common(memory, "0:0", datagrams=network is None, num_gpus=len(key.gpus_of(node)))
        | wired
        | {
            "image": key.train_image,
            "command": [
                "python",
                "-u",
                "-m",
                "grader.launch.servers.container_server",
                *([ON_NETWORK] if network is not None else []),
            ],
            "cap_add": ["SETUID", "SETGID", "KILL"],
            "volumes": mounts,
            "cpu_shares": _CPU_SHARES,
            "shm_size": min(1 << 30, key.memory_bytes // 2),
            "tmpfs": {
                "/tmp": "rw,nosuid,nodev,noexec,size=256m,nr_inodes=20k,mode=1777",
                # The supervisor's: it lays out the run's own files in there, and links to what is shared.
                DATA: "rw,nosuid,nodev,noexec,size=64m,nr_inodes=1m,mode=0755",
                WORK: f"rw,nosuid,nodev,noexec,size=256m,nr_inodes=20k,mode=0755,{own}",
                # torch.compile loads what it has compiled.
                SCRATCH: f"rw,nosuid,nodev,exec,size=512m,nr_inodes=40k,mode=0700,{own}",
            },
            "device_requests": device_requests(key.gpus_of(node), key.how_gpus),
            "cpuset_cpus": key.cpus,
            "environment": {"OMP_NUM_THREADS": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"},
        }
    )


def scorer_container(key: PairKey, uid: int, volumes: tuple[str, ...]) -> dict[str, Any]:
    """Container B: reads what the run left, has the labels, runs nothing of the learner's.

    Args:
        key: image, data and limits.
        uid: user of the ranks: it may read their files, through read-only mounts.
        volumes: names of the output volume and the record volume of each node.
    """
    output, *records = volumes
    mounts = {output: {"bind": "/out", "mode": "ro"}}
    for node, record in enumerate(records):
        mounts[record] = {"bind": f"/record/{node}", "mode": "ro"}
    if key.visible_volume:
        mounts[key.visible_volume] = {"bind": "/visible", "mode": "ro"}
    if key.hidden_volume:
        mounts[key.hidden_volume] = {"bind": "/hidden", "mode": "ro"}
    room = key.output_bytes + _RECORD_BYTES * key.nnodes
    return _common(_SCORER_BYTES + room, f"{uid}:{JUDGE_GID}") | {
        "image": key.evaluate_image,
        "command": ["python", "-u", "-m", "grader.evaluate.scorer.container_server"],
        "network_mode": "none",
        "hostname": "scorer",
        "extra_hosts": {"scorer": "127.0.0.1"},
        "volumes": mounts,
        "tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={room},nr_inodes=40k,mode=1777"},
        "environment": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    }


def _common(memory_bytes: int, user: str, *, datagrams: bool = True, num_gpus: int = 0) -> dict[str, Any]:
    """What holds for both."""
    found: dict[str, Any] = {
        "user": user,
        "stdin_open": True,
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true", f"seccomp={seccomp_profile(datagrams=datagrams)}"],
        "mem_limit": memory_bytes,
        # Equal: no swap on top.
        "memswap_limit": memory_bytes,
        "oom_kill_disable": False,
        "pids_limit": most_processes(num_gpus),
        "ipc_mode": "private",
        "ulimits": [
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="fsize", soft=_FILE_BYTES, hard=_FILE_BYTES),
            Ulimit(name="nofile", soft=4096, hard=4096),
        ],
        "init": True,
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "working_dir": "/",
    }
    if name := settings().docker_runtime:
        found["runtime"] = name
    return found


@cache
def seccomp_profile(*, datagrams: bool = True) -> str:
    """Our own profile, as the engine takes it: its text.

    Args:
        datagrams: False leaves out UDP. Nothing answers from outside of an attempt's network, but the kernel of a host
            that does not check where packets come from (rp_filter 0) hands a single datagram, sent past the routes, to
            whoever listens there. Ranks need streams only.
    """
    text = Path(settings().containers_dir, "seccomp.json").read_text(encoding="utf-8")
    if datagrams:
        return text
    profile = json.loads(text)
    rules = [rule for rule in profile["syscalls"] if not _opens(rule, socket.IPPROTO_UDP)]
    for rule in rules:
        if _opens(rule, socket.IPPROTO_IP):
            # The type's low bits; above them stand flags.
            stream = {"value": 0xF, "valueTwo": int(socket.SOCK_STREAM), "op": "SCMP_CMP_MASKED_EQ"}
            rule["args"].append({"index": 1, **stream})
    return json.dumps(profile | {"syscalls": rules})


def _opens(rule: dict[str, Any], protocol: int) -> bool:
    """Whether a rule lets sockets of an internet family and this protocol be opened."""
    wanted = {one["index"]: one["value"] for one in rule.get("args", ())}
    internet = wanted.get(0) in (socket.AF_INET, socket.AF_INET6)
    return "socket" in rule["names"] and internet and wanted.get(2) == protocol
