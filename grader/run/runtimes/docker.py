"""The runtime for untrusted code: one container for the ranks, another for the scorer, both made for one attempt.

Shares no folder with the containers: what goes in and comes out passes through their standard streams. What may be
done inside is written in `engine.containers`; who starts, watches and ends the ranks is `grader.launch`.
"""

from __future__ import annotations

import os
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from grader.errors import InfraError
from grader.launch.bounds import answer_s
from grader.launch.servers.container_server import DATA, OUT, RECORD, SCRATCH, WORK
from grader.launch.spec import LaunchSpec
from grader.run import images
from grader.run.container_connection import ConnectionLostError
from grader.run.container_scorer import ContainerScorer
from grader.run.device_reports import quarantining
from grader.run.devices.abandoned_leases import AbandonedLease
from grader.run.devices.lease import Lease
from grader.run.engine.client import connect, engine_errors, engine_problem
from grader.run.engine.container_pair import ContainerPair
from grader.run.engine.container_settings import PairKey
from grader.run.engine.data_volumes import DataVolumes
from grader.run.engine.file_transfer import (
    FILES_S,
    fetch_files,
    out_of_memory,
    timed_out,
    write_lost_record,
)
from grader.run.engine.gpu_access import GpuAccess, gpu_access
from grader.run.engine.node_coordinator import NodeCoordinator
from grader.run.engine.node_records import merge_records
from grader.run.engine.ownership import Ownership
from grader.run.engine.warm_pool import WarmPool
from grader.run.host_devices import host_devices
from grader.run.job_leases import lease_devices
from grader.run.launch_specs import launch_spec
from grader.run.record_completion import complete_record
from grader.run.runtime import Availability, Job, Progress
from grader.run.submission_files import make_empty, write_submission
from grader.run.workspace import Workspace
from grader.settings import settings

_SCORING_S = 75.0


class DockerRuntime:
    """Runs jobs in containers of the engine that DOCKER_HOST names, or of this machine's."""

    name = "docker"
    isolates = True
    spans_nodes = True

    def __init__(self) -> None:
        self._pool: WarmPool | None = None
        self._pair: ContainerPair | None = None
        self._like: PairKey | None = None
        self._lease: Lease | None = None

    def self_test(self) -> Availability:
        """An engine that answers, and the images of this version."""
        if why := engine_problem():
            return Availability(False, why)
        if missing := images.missing():
            names = ", ".join(missing)
            return Availability(False, f"images are missing or of another version ({names}): `make images`")
        return Availability(True, "containers without network, rights or shared folders")

    def __enter__(self) -> Self:
        state = settings().state_dir
        self._client = connect()
        self._ownership = Ownership(state)
        try:
            self._ownership.clear_dead(self._client)
            self._volumes = DataVolumes(self._client, self._ownership, state, images.image_name("train"))
            # What a dead holder left running on its devices is ended before others get them.
            self._devices = host_devices(self.name, self._clear_dead)
            self._pool = WarmPool(self._client, self._ownership, settings().pool_pairs, settings().pool_bytes)
        except BaseException:
            self._ownership.close()
            self._client.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pool, self._pool = self._pool, None
        pair, self._pair = self._pair, None
        if pool is None:
            return
        try:
            if pair is not None:
                pool.release(pair)
            pool.close()
            self._give_back()
        finally:
            self._ownership.close()
            self._client.close()

    def _clear_dead(self, _abandoned: AbandonedLease) -> None:
        self._ownership.clear_dead(self._client)

    @property
    def owner(self) -> str:
        """The name that everything of this grader carries on the engine; only while entered."""
        return self._ownership.name

    @property
    def scorer(self) -> ContainerScorer | None:
        """The scorer that holds what the last run left."""
        return ContainerScorer(self._pair.scorer) if self._pair is not None else None

    def warm(self, like: Job | None = None) -> None:
        """Wait until a pair for such a job is ready; without one, for the kind of the last job."""
        if like is not None and not like.gpus_per_node:
            # Which devices it will get is known only when it gets them.
            self._like = self._key(like)
        if self._like is not None:
            self._open_pool().expect(self._like)
            self._open_pool().wait(self._like)

    def release(self) -> None:
        """Remove the last attempt's containers and have the next ones made, both in the background."""
        pair, self._pair = self._pair, None
        if pair is not None:
            self._open_pool().release(pair)
        self._give_back()
        if self._like is not None:
            self._open_pool().expect(self._like)

    def run(self, job: Job, workspace: Workspace, on_progress: Callable[[Progress], None]) -> None:
        """Run a job; see the protocol.

        Raises:
            InfraError: the engine, a container or this machine failed.
        """
        started = time.monotonic()
        self.release()
        for folder in (workspace.submission, workspace.outputs):
            make_empty(folder)
        write_submission(job.submission, workspace.submission)
        after_s = FILES_S + (0.0 if job.gpus_per_node else _SCORING_S)
        self._lease = lease = lease_devices(self._devices, job, after_s, on_progress)
        everything = set(lease.cpus) == os.sched_getaffinity(0)
        self._like = self._key(job, lease.gpus, "" if everything else lease.cpuset)
        self._pair = pair = self._open_pool().take(self._like)
        if not lease.gpus and not everything:
            pair.pin(lease.cpus)
        ready = time.monotonic()
        try:
            with quarantining(self._devices):
                decided, lost, devices = self._drive(pair, job, on_progress)
            ran = time.monotonic()
            outputs, refused = fetch_files(pair.scorer, job.limits.output_bytes, workspace, job.nnodes)
        except BaseException:
            # Ctrl-C too: the learner's processes end with their container, before anything else happens.
            pair.kill()
            self.release()
            raise
        if lost:
            write_lost_record(workspace, job, lost)
        elif job.nnodes > 1:
            merge_records(workspace, job.nnodes, decided)
        lease.check()
        if lease.gpus:
            # Scoring needs none, and takes as long as a short run.
            self._give_back()
        waited_s = lease.waited_s
        phases = {"lease": waited_s, "prepare": ready - started - waited_s, "collect": time.monotonic() - ran}
        facts = {"refused_outputs": refused, "lease": lease.facts}
        complete_record(self, workspace, outputs, phases, facts, devices)

    def _give_back(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def _drive(
        self, pair: ContainerPair, job: Job, on_progress: Callable[[Progress], None]
    ) -> tuple[tuple[str, str] | None, tuple[str, str] | None, list[dict[str, Any]]]:
        """Give the job to its nodes and wait for their end.

        Returns:
            Ending and reason where the nodes decided upon them; the same where nobody in there could tell any more;
            facts about the GPUs.
        """
        files = [{"path": file.path, "text": file.text} for file in job.submission.files]
        data = [{"path": path, "base64": b64encode(own).decode()} for path, own in job.own_data.items()]
        requests = [
            {"files": files, "data": data, "spec": asdict(_spec(job, pair, node))}
            for node in range(job.nnodes)
        ]
        coordinator = NodeCoordinator(pair.trains, job.nproc_per_node)
        patience_s = answer_s(job.gpus_per_node)
        begun = False

        def heard(sign: Progress) -> None:
            nonlocal begun
            begun = True
            on_progress(sign)

        try:
            if coordinator.run(requests, time.monotonic() + job.limits.wall_s + patience_s, heard):
                return coordinator.ending, None, coordinator.reports.devices
        except ConnectionLostError:
            if nodes := pair.out_of_memory():
                pair.kill()
                return None, out_of_memory(job, nodes), coordinator.reports.devices
            raise
        if not begun:
            raise InfraError(f"The supervisor gave no sign of life within {patience_s:.0f} s of the limit.")
        # A crowd of processes can keep everything in there from its turn; none of them outlives the container.
        pair.kill()
        return None, timed_out(job), coordinator.reports.devices

    def _key(self, job: Job, gpus: tuple[str, ...] = (), cpus: str = "") -> PairKey:
        return PairKey(
            train_image=images.image_name("train"),
            evaluate_image=images.image_name("evaluate"),
            data_volume=self._volumes.of(job.data_dir, job.shared_data),
            visible_volume=self._volumes.of(job.data_dir) if job.hidden_dir is not None else "",
            hidden_volume=self._volumes.of(job.hidden_dir) if job.hidden_dir is not None else "",
            memory_bytes=job.limits.memory_bytes,
            output_bytes=job.limits.output_bytes,
            gpus=gpus,
            how_gpus=self._gpu_access() if gpus else GpuAccess.HOOK,
            # Containers without devices are made before anybody knows which cores they will get.
            cpus=cpus if gpus else "",
            nnodes=job.nnodes,
        )

    def _gpu_access(self) -> GpuAccess:
        with engine_errors("The container engine did not describe itself"):
            return gpu_access(self._client.info())

    def _open_pool(self) -> WarmPool:
        if self._pool is None:
            raise InfraError("The docker runtime was not entered.")
        return self._pool


RUNTIME = DockerRuntime


def _spec(job: Job, pair: ContainerPair, node: int) -> LaunchSpec:
    return launch_spec(
        job,
        submission_dir=WORK,
        data_dir=DATA,
        output_dir=OUT,
        scratch_dir=SCRATCH,
        record_dir=RECORD,
        rank_uid=pair.uid,
        contained=True,
        nnodes=job.nnodes,
        node_rank=node,
        gpus=pair.key.gpus_of(node),
        master_addr=pair.meeting.address,
        master_port=pair.meeting.port if job.nnodes > 1 else 0,
        interface=pair.meeting.interface,
    )
