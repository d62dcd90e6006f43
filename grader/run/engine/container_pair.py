"""One attempt's containers: those that run ranks, the one that scores, and the volumes between them.

Made for one attempt and never used for a second. Making takes seconds, so it is done ahead (see `pool`); taking it
apart is always possible, whatever state it is in. Judges nothing.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from docker import DockerClient
from docker.errors import APIError
from docker.models.containers import Container
from docker.models.networks import Network

from grader.errors import InfraError
from grader.launch.servers.container_server import FIRST_RANK_UID, NUM_RANK_UIDS
from grader.run.engine.attached_connection import AttachedConnection
from grader.run.engine.client import engine_errors, gone_is_fine
from grader.run.engine.container_settings import (
    PairKey,
    attempt_network,
    output_volume,
    record_volume,
    scorer_container,
    train_container,
)
from grader.run.engine.inspection import memory_bytes
from grader.run.engine.ownership import Ownership

READY_S = 300.0
_INSIST_S = 90.0
_COUNT_GPUS = """
import ctypes, sys
nvml, num = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint()
failed = nvml.nvmlInitWithFlags(0) or nvml.nvmlDeviceGetCount_v2(ctypes.byref(num))
sys.exit(failed != 0 or num.value != int(sys.argv[1]))
"""
"""Asks the driver in a container for its GPUs, as `nvidia-smi` would."""


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """Interface that ranks talk through, and where the rendezvous store of node 0 listens."""

    interface: str
    address: str
    port: int


class ContainerPair:
    """Containers of one attempt, started and importing torch from the moment this object exists.

    Attributes:
        key: what it was made for.
        token: names everything that belongs to it; never given twice.
        uid: user of its ranks.
        trains: one connection per node; scorer: the scorer's.
        meeting: where the ranks meet; known once it is ready.
    """

    def __init__(self, client: DockerClient, ownership: Ownership, key: PairKey) -> None:
        self.key = key
        self.token = secrets.token_hex(8)
        self.uid = FIRST_RANK_UID + secrets.randbelow(NUM_RANK_UIDS)
        self.made_at = time.monotonic()
        self._client = client
        self._ownership = ownership
        self._volumes: list[str] = []
        self._network: Network | None = None
        self._containers: list[Container] = []
        self._ready = False
        self._closed = False
        self._closing = threading.Lock()
        self.trains: list[AttachedConnection] = []
        try:
            with engine_errors("The containers of an attempt could not be started"):
                self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        key = self.key
        output = self._volume("out", output_volume(key.output_bytes, self.uid))
        records = [self._volume(f"record{node}", record_volume()) for node in range(key.nnodes)]
        if key.nnodes > 1:
            labels = self._ownership.labels("network", self.token)
            self._network = self._client.networks.create(
                f"grader-{self.token}", labels=labels, **attempt_network()
            )
        for node, record in enumerate(records):
            network = self._network.name if self._network is not None else None
            settings = train_container(key, self.uid, (output, record), network, node)
            self.trains.append(self._start(f"train{node}", settings))
        self.scorer = self._start("scorer", scorer_container(key, self.uid, (output, *records)))

    def _volume(self, role: str, settings: dict[str, Any]) -> str:
        name = f"grader-{role}-{self.token}"
        self._client.api.create_volume(
            name,
            driver=settings["driver"],
            driver_opts=settings["driver_opts"],
            labels=self._ownership.labels(role, self.token),
        )
        self._volumes.append(name)
        return name

    def _start(self, role: str, settings: dict[str, Any]) -> AttachedConnection:
        container = self._client.containers.create(
            name=f"grader-{role}-{self.token}", labels=self._ownership.labels(role, self.token), **settings
        )
        self._containers.append(container)
        connection = AttachedConnection(container)
        container.start()
        return connection

    def wait_ready(self, deadline: float | None = None) -> None:
        """Wait until a job would start at once.

        Raises:
            InfraError: that never happens.
        """
        deadline = time.monotonic() + READY_S if deadline is None else deadline
        if self._ready:
            return
        for connection in (*self.trains, self.scorer):
            event = connection.event(deadline)
            if event is None or event.get("event") != "ready":
                raise InfraError(f"A container did not get ready in time.{connection.last_words()}")
            if connection is self.trains[0]:
                self.meeting = Rendezvous(str(event["interface"]), str(event["address"]), int(event["port"]))
        self._ready = True

    @property
    def usable(self) -> bool:
        """Whether all its containers still run, with the devices that they were made with; asks the engine."""
        try:
            with engine_errors("The containers of an attempt could not be looked at"):
                for container in self._containers:
                    container.reload()
                running = all(one.status == "running" for one in self._containers)
                return bool(self._containers) and running and all(map(self._has_gpus, range(self.key.nnodes)))
        except InfraError:
            return False

    def _has_gpus(self, node: int) -> bool:
        """Whether a rank could open the devices of a node.

        `systemctl daemon-reload` takes away from running containers what NVIDIA's hook gave them, without a sign:
        https://github.com/NVIDIA/nvidia-container-toolkit/issues/1397.
        """
        num = len(self.key.gpus_of(node))
        if not num:
            return True
        look = ["python", "-c", _COUNT_GPUS, str(num)]
        return self._containers[node].exec_run(look, user=str(self.uid)).exit_code == 0

    @property
    def idle_bytes(self) -> int:
        """Memory its containers hold now, page cache left out; 0 where the engine does not say."""
        with engine_errors("The memory of idle containers could not be looked at"):
            return sum(memory_bytes(self._client, str(one.id)) for one in self._containers)

    def pin(self, cores: tuple[int, ...]) -> None:
        """Let the ranks' containers use these cores only.

        Raises:
            ValueError: they have devices. An engine that updates a container may write anew which devices it may open,
                and knows nothing of those that NVIDIA's hook has given it: https://github.com/NVIDIA/nvidia-docker/issues/1469.
        """
        if self.key.gpus:
            raise ValueError("containers with devices get their cores when they are made")
        with engine_errors("The containers of an attempt could not be given their cores"):
            for container in self._containers[: self.key.nnodes]:
                container.update(cpuset_cpus=",".join(map(str, cores)))

    def kill(self) -> None:
        """End every process of the learner's side, at once."""
        for container in self._containers[: self.key.nnodes]:
            _insist("A container could not be ended", partial(_kill, container))

    def out_of_memory(self) -> tuple[int, ...]:
        """Nodes where the kernel ended a process for lack of memory, as the engine saw it."""
        found = []
        with engine_errors("The containers of an attempt could not be looked at"):
            for node, container in enumerate(self._containers[: self.key.nnodes]):
                container.reload()
                if container.attrs["State"].get("OOMKilled"):
                    found.append(node)
        return tuple(found)

    def close(self) -> None:
        """Remove everything; does nothing the second time.

        Raises:
            InfraError: the engine does not let us; the labels still say whose it is.
        """
        with self._closing:
            if self._closed:
                return
            self._closed = True
            for connection in (*self.trains, *([self.scorer] if hasattr(self, "scorer") else [])):
                connection.close()
            with engine_errors("The containers of an attempt could not be removed"):
                for container in self._containers:
                    _insist("A container could not be removed", partial(container.remove, force=True, v=True))
                if self._network is not None:
                    with gone_is_fine():
                        self._network.remove()
                for name in self._volumes:
                    with gone_is_fine():
                        self._client.api.remove_volume(name, force=True)


def _kill(container: Container) -> None:
    container.reload()
    if container.status == "running":
        container.kill()


def _insist(doing: str, action: Callable[[], object]) -> None:
    """Have the engine do it, again where it says that it could not: it waits ten seconds for a container's end.

    Raises:
        InfraError: it still does not after a minute and a half.
    """
    deadline = time.monotonic() + _INSIST_S
    while True:
        try:
            with engine_errors(doing), gone_is_fine():
                action()
            return
        except InfraError as error:
            # Five hundred processes that hold gigabytes take their time on a busy machine; an engine that is not there
            # is another matter.
            if not isinstance(error.__cause__, APIError) or time.monotonic() > deadline:
                raise
            time.sleep(1)
