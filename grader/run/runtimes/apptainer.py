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
from typing import Self

from grader.errors import InfraError
from grader.launch.box import DATA, OUT, RECORD, SCRATCH, WORK
from grader.launch.spec import LaunchSpec
from grader.run.apptainer.base import DATA as COPIES
from grader.run.apptainer.base import make_base, remove_stale
from grader.run.apptainer.cell import Cell
from grader.run.apptainer.command import MOST_OF_ACCOUNT, MOST_PROCESSES, Start, trial_command
from grader.run.apptainer.image_files import image_file, objection
from grader.run.apptainer.shelf import Shelf
from grader.run.apptainer.site import Site, limits_groups, look
from grader.run.asking import lease_for, spec_of
from grader.run.completion import complete_record
from grader.run.devices.lease import Lease
from grader.run.devices.leases import Devices
from grader.run.devices.sweep import Abandoned
from grader.run.engine.bring_back import FILES_S, bring_back
from grader.run.layout import lay_out, make_empty
from grader.run.runtime import Availability, Job, Progress
from grader.run.signs import progress_of
from grader.run.wired_scorer import WiredScorer
from grader.run.workspace import Workspace
from grader.settings import settings

_ENDING_S = 12.0
_GIVING_BACK_S = 20.0
_SCORING_S = 75.0


class ApptainerRuntime:
    """Runs jobs in containers that belong to an ordinary account of this machine."""

    name = "apptainer"
    isolates = True
    spans_nodes = False

    def __init__(self) -> None:
        self._site: Site | None = None
        self._base: Path | None = None
        self._next: Cell | None = None
        self._cell: Cell | None = None
        self._like: Start | None = None
        self._lease: Lease | None = None

    def self_test(self) -> Availability:
        """The program, an account for containers, and the images of this version."""
        site = look()
        if isinstance(site, str):
            return Availability(False, site)
        try:
            if why := objection(site):
                return Availability(False, why)
        except InfraError as error:
            return Availability(False, str(error))
        ranks = (
            "ranks apart from their supervisor" if site.maps_users else "ranks share their supervisor's user"
        )
        return Availability(
            True, f"{site.version} as {site.user}: no network, no files of the machine; {ranks}"
        )

    def __enter__(self) -> Self:
        site = look()
        if isinstance(site, str):
            raise InfraError(f"Containers cannot be made here: {site}.")
        images = image_file("train"), image_file("evaluate")
        self._site = site
        self._base = base = make_base(site)
        self._plain = Start(
            program=site.program,
            train_image=images[0],
            evaluate_image=images[1],
            settings=base,
            folder=base,
            data=None,
            hidden=None,
            memory_bytes=1 << 30,
            maps_users=site.maps_users,
            limits_groups=False,
        )
        remove_stale(site, self._plain)
        self._shelf = Shelf(base / COPIES, site)
        allowed = limits_groups(site, trial_command(self._plain), site.environment(base))
        self._plain = replace(self._plain, limits_groups=allowed)
        # What a dead holder left goes before its devices are handed on; its containers end with it.
        self._devices = Devices(settings().state_dir, reclaim=self._clear_dead)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cells, self._cell, self._next = (self._cell, self._next), None, None
        base, self._base = self._base, None
        if base is None:
            return
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(self._give_back)
                for cell in filter(None, cells):
                    stack.callback(cell.close)
        finally:
            shutil.rmtree(base, ignore_errors=True)

    def _clear_dead(self, _abandoned: Abandoned) -> None:
        remove_stale(self._entered(), self._plain)

    @property
    def scorer(self) -> WiredScorer | None:
        """The scorer that holds what the last run left."""
        return WiredScorer(self._cell.scorer) if self._cell is not None else None

    def warm(self, like: Job | None = None) -> None:
        """Wait until containers for such a job are ready; without one, for the kind of the last job."""
        if like is not None and not like.gpus_per_node:
            self._like = self._start(like)
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
        lay_out(job.submission, workspace.submission)
        after_s = _ENDING_S + _GIVING_BACK_S + FILES_S + _SCORING_S
        self._lease = lease = lease_for(self._devices, job, after_s, on_progress)
        self._like = self._start(job, lease.gpus)
        self._cell = cell = self._expect(self._like)
        self._next = None
        try:
            cell.wait_ready()
            if set(lease.cpus) != os.sched_getaffinity(0):
                cell.train.pin(lease.cpus)
            ready = time.monotonic()
            self._drive(cell, job, on_progress)
            ran = time.monotonic()
            outputs, refused = bring_back(cell.scorer, job.limits.output_bytes, workspace)
        except BaseException:
            # Ctrl-C too: the learner's processes end with their container, before anything else happens.
            cell.kill()
            self.release()
            raise
        lease.check()
        phases = {
            "lease": lease.waited_s,
            "prepare": ready - started - lease.waited_s,
            "collect": time.monotonic() - ran,
        }
        gap = self._entered().gap(devices=bool(lease.gpus))
        facts = {"refused_outputs": refused, "lease": lease.facts, "isolation_gap": gap}
        complete_record(self, workspace, outputs, phases, facts)

    def _drive(self, cell: Cell, job: Job, on_progress: Callable[[Progress], None]) -> None:
        """Give the job and hear it out."""
        wire = cell.train
        files = [{"path": file.path, "text": file.text} for file in job.submission.files]
        wire.send({"files": files, "spec": asdict(_spec(job, cell)), "give_back": bool(cell.uid)})
        deadline = time.monotonic() + job.limits.wall_s + _ENDING_S
        while (event := wire.event(deadline)) is not None:
            what = event.get("event")
            if what == "given_back" or (what == "ended" and not cell.uid):
                return
            if what == "ended":
                deadline = time.monotonic() + _GIVING_BACK_S
            elif what == "failed":
                reason = event.get("reason")
                raise InfraError(f"The run could not be supervised: {reason}.{wire.last_words()}")
            elif what == "progress":
                on_progress(progress_of(event))
        raise InfraError(f"The supervisor gave no answer within {_ENDING_S:.0f} s of the limit.")

    def _let_go(self) -> None:
        cell, self._cell = self._cell, None
        try:
            if cell is not None:
                cell.close()
        finally:
            self._give_back()

    def _give_back(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def _start(self, job: Job, gpus: tuple[str, ...] = ()) -> Start:
        self._entered()
        return replace(
            self._plain,
            data=self._shelf.of(job.data_dir),
            hidden=self._shelf.of(job.hidden_dir) if job.hidden_dir is not None else None,
            memory_bytes=job.limits.memory_bytes,
            gpus=gpus,
        )

    def _expect(self, start: Start) -> Cell:
        """The next containers, for attempts of this kind, starting now if they are not there."""
        if self._next is not None and (self._next.key != start or not self._next.usable):
            cell, self._next = self._next, None
            cell.close()
        if self._next is None:
            if self._base is None:
                raise InfraError("The apptainer runtime was not entered.")
            self._next = Cell(self._entered(), start, self._base)
        return self._next

    def _entered(self) -> Site:
        if self._site is None or self._base is None:
            raise InfraError("The apptainer runtime was not entered.")
        return self._site


RUNTIME = ApptainerRuntime


def _spec(job: Job, cell: Cell) -> LaunchSpec:
    return spec_of(
        job,
        submission_dir=WORK,
        data_dir=DATA,
        output_dir=OUT,
        scratch_dir=SCRATCH,
        record_dir=RECORD,
        rank_uid=cell.uid,
        num_processes=MOST_PROCESSES if cell.uid else MOST_OF_ACCOUNT,
        own_network=True,
    )
