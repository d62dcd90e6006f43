"""The runtime for sites where no container engine is allowed: containers that an ordinary user may start.

Its two containers and what is said with them are those of the docker runtime; they share folders of this machine,
because nothing else is to be had. Where the account has subordinate users, ranks are another user than their
supervisor; where not, reports say so.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from grader.errors import InfraError
from grader.launch.bounds import answer_s, most_processes
from grader.launch.ranks.data_folder import lay_out_data
from grader.launch.servers.container_server import DATA, OUT, PREPARED, RECORD, SCRATCH, WORK
from grader.launch.spec import LaunchSpec
from grader.run.apptainer.base_folder import DATA as COPIES
from grader.run.apptainer.base_folder import make_base_folder, remove_stale_folders
from grader.run.apptainer.command_lines import (
    MOST_OF_ACCOUNT,
    ContainerOptions,
    trial_command,
)
from grader.run.apptainer.container_pair import ApptainerPair
from grader.run.apptainer.data_copies import DataCopies
from grader.run.apptainer.image_files import image_file, objection
from grader.run.apptainer.installation import Installation, find_installation, limits_groups
from grader.run.container_scorer import ContainerScorer
from grader.run.device_reports import DeviceReports, quarantining
from grader.run.devices.abandoned_leases import AbandonedLease
from grader.run.devices.lease import Lease
from grader.run.engine.file_transfer import FILES_S, fetch_files
from grader.run.host_devices import host_devices
from grader.run.job_leases import lease_devices
from grader.run.launch_specs import launch_spec
from grader.run.progress_events import read_progress
from grader.run.record_completion import complete_record
from grader.run.runtime import Availability, Job, Progress
from grader.run.submission_files import make_empty, write_submission
from grader.run.workspace import Workspace

_GIVING_BACK_S = 20.0
_SCORING_S = 75.0


class ApptainerRuntime:
    """Runs jobs in containers that belong to an ordinary account of this machine."""

    name = "apptainer"
    isolates = True
    spans_nodes = False

    def __init__(self) -> None:
        self._installation: Installation | None = None
        self._base: Path | None = None
        self._next: ApptainerPair | None = None
        self._pair: ApptainerPair | None = None
        self._like: ContainerOptions | None = None
        self._lease: Lease | None = None

    def self_test(self) -> Availability:
        """The program, an account for containers, and the images of this version."""
        installation = find_installation()
        if isinstance(installation, str):
            return Availability(False, installation)
        try:
            if why := objection(installation):
                return Availability(False, why)
        except InfraError as error:
            return Availability(False, str(error))
        ranks = (
            "ranks apart from their supervisor"
            if installation.maps_users
            else "ranks share their supervisor's user"
        )
        return Availability(
            True,
            f"{installation.version} as {installation.user}: no network, no files of the machine; {ranks}",
        )

    def __enter__(self) -> Self:
        installation = find_installation()
        if isinstance(installation, str):
            raise InfraError(f"Containers cannot be made here: {installation}.")
        images = image_file("train"), image_file("evaluate")
        self._installation = installation
        self._base = base = make_base_folder(installation)
        self._plain = ContainerOptions(
            program=installation.program,
            train_image=images[0],
            evaluate_image=images[1],
            settings=base,
            folder=base,
            data=None,
            visible=None,
            hidden=None,
            memory_bytes=1 << 30,
            maps_users=installation.maps_users,
            limits_groups=False,
        )
        remove_stale_folders(installation, self._plain)
        self._data = DataCopies(base / COPIES, installation)
        allowed = limits_groups(installation, trial_command(self._plain), installation.environment(base))
        self._plain = replace(self._plain, limits_groups=allowed)
        # What a dead holder left goes before its devices are handed on; its containers end with it.
        self._devices = host_devices(self.name, self._clear_dead)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pairs, self._pair, self._next = (self._pair, self._next), None, None
        base, self._base = self._base, None
        if base is None:
            return
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(self._give_back)
                for pair in filter(None, pairs):
                    stack.callback(pair.close)
        finally:
            shutil.rmtree(base, ignore_errors=True)

    def _clear_dead(self, _abandoned: AbandonedLease) -> None:
        remove_stale_folders(self._entered(), self._plain)

    @property
    def scorer(self) -> ContainerScorer | None:
        """The scorer that holds what the last run left."""
        return ContainerScorer(self._pair.scorer) if self._pair is not None else None

    def warm(self, like: Job | None = None) -> None:
        """Wait until containers for such a job are ready; without one, for the kind of the last job."""
        if like is not None and not like.gpus_per_node:
            self._like = self._options(like)
        if self._like is not None:
            self._expect(self._like).wait_ready()

    def release(self) -> None:
        """Remove the last attempt's containers and have the next ones start."""
        self._let_go()
        if self._like is not None:
            self._expect(self._like)

    def run(self, job: Job, workspace: Workspace, on_progress: Callable[[Progress], None]) -> None:
        """Run a job; see the protocol.

        Raises:
            InfraError: this runtime has one node, or a container or this machine failed.
        """
        if job.nnodes != 1:
            raise InfraError(f"The apptainer runtime has one node; this job needs {job.nnodes}.")
        started = time.monotonic()
        self._let_go()
        for folder in (workspace.submission, workspace.outputs):
            make_empty(folder)
        write_submission(job.submission, workspace.submission)
        after_s = _GIVING_BACK_S + FILES_S + (0.0 if job.gpus_per_node else _SCORING_S)
        self._lease = lease = lease_devices(self._devices, job, after_s, on_progress)
        self._like = self._options(job, lease.gpus)
        self._pair = pair = self._expect(self._like)
        self._next = None
        try:
            pair.wait_ready()
            if set(lease.cpus) != os.sched_getaffinity(0):
                pair.train.pin(lease.cpus)
            lay_out_data(pair.folder / "data", job.shared_data, PREPARED, job.own_data)
            ready = time.monotonic()
            with quarantining(self._devices):
                devices = self._drive(pair, job, on_progress)
            ran = time.monotonic()
            outputs, refused = fetch_files(pair.scorer, job.limits.output_bytes, workspace)
        except BaseException:
            # Ctrl-C too: the learner's processes end with their container, before anything else happens.
            pair.kill()
            self.release()
            raise
        lease.check()
        if lease.gpus:
            # Scoring needs none, and takes as long as a short run.
            self._give_back()
        phases = {
            "lease": lease.waited_s,
            "prepare": ready - started - lease.waited_s,
            "collect": time.monotonic() - ran,
        }
        gap = self._entered().gap(devices=bool(lease.gpus))
        facts = {"refused_outputs": refused, "lease": lease.facts, "isolation_gap": gap}
        complete_record(self, workspace, outputs, phases, facts, devices)

    def _drive(
        self, pair: ApptainerPair, job: Job, on_progress: Callable[[Progress], None]
    ) -> list[dict[str, Any]]:
        """Give the job and wait for its end; facts about the GPUs."""
        connection, reports = pair.train, DeviceReports()
        files = [{"path": file.path, "text": file.text} for file in job.submission.files]
        connection.send({"files": files, "spec": asdict(_spec(job, pair)), "give_back": bool(pair.uid)})
        patience_s = answer_s(job.gpus_per_node)
        deadline = time.monotonic() + job.limits.wall_s + patience_s
        while (event := connection.event(deadline)) is not None:
            if reports.take(event):
                continue
            what = event.get("event")
            if what == "given_back" or (what == "ended" and not pair.uid):
                return reports.devices
            if what == "ended":
                deadline = time.monotonic() + _GIVING_BACK_S
            elif what == "failed":
                reason = event.get("reason")
                raise InfraError(f"The run could not be supervised: {reason}.{connection.last_words()}")
            elif what == "progress":
                on_progress(read_progress(event))
        raise InfraError(f"The supervisor gave no answer within {patience_s:.0f} s of the limit.")

    def _let_go(self) -> None:
        pair, self._pair = self._pair, None
        try:
            if pair is not None:
                pair.close()
        finally:
            self._give_back()

    def _give_back(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def _options(self, job: Job, gpus: tuple[str, ...] = ()) -> ContainerOptions:
        self._entered()
        return replace(
            self._plain,
            data=self._data.of(job.data_dir, job.shared_data),
            visible=self._data.of(job.data_dir) if job.hidden_dir is not None else None,
            hidden=self._data.of(job.hidden_dir) if job.hidden_dir is not None else None,
            memory_bytes=job.limits.memory_bytes,
            gpus=gpus,
        )

    def _expect(self, options: ContainerOptions) -> ApptainerPair:
        """The next containers, for attempts of this kind, starting now if they are not there."""
        if self._next is not None and (self._next.key != options or not self._next.usable):
            pair, self._next = self._next, None
            pair.close()
        if self._next is None:
            if self._base is None:
                raise InfraError("The apptainer runtime was not entered.")
            self._next = ApptainerPair(self._entered(), options, self._base)
        return self._next

    def _entered(self) -> Installation:
        if self._installation is None or self._base is None:
            raise InfraError("The apptainer runtime was not entered.")
        return self._installation


RUNTIME = ApptainerRuntime


def _spec(job: Job, pair: ApptainerPair) -> LaunchSpec:
    return launch_spec(
        job,
        submission_dir=WORK,
        data_dir=DATA,
        output_dir=OUT,
        scratch_dir=SCRATCH,
        record_dir=RECORD,
        rank_uid=pair.uid,
        gpus=pair.key.gpus,
        num_processes=most_processes(job.gpus_per_node) if pair.uid else MOST_OF_ACCOUNT,
        own_network=True,
    )
