"""The runtime without isolation: ranks are plain processes of this machine, with the judge's own rights.

For demos, tests and trusted reference runs. Isolates nothing and says so; what it promises is the same launch, the
same record, the same limits in time and output, the same leases of GPUs, and that nothing stays behind.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from grader.errors import InfraError, UsageError
from grader.launch.bounds import answer_s
from grader.launch.ranks.data_folder import lay_out_data
from grader.launch.spec import LaunchSpec
from grader.model.run import WrittenFile
from grader.run.device_reports import DeviceReports, quarantining
from grader.run.devices.lease import Lease
from grader.run.fork_server_client import ForkServerClient, ForkServerLostError
from grader.run.host_devices import host_devices
from grader.run.job_leases import lease_devices
from grader.run.launch_specs import launch_spec
from grader.run.output_collection import Collection, collect
from grader.run.progress_events import read_progress
from grader.run.record_completion import complete_record
from grader.run.runtime import Availability, Job, Progress
from grader.run.submission_files import make_empty, write_submission
from grader.run.workspace import Workspace

_AFTER_S = 60.0
"""For what is laid out before a run and collected after it."""
_PREFIX = "grader-run-"


class ProcessRuntime:
    """Runs jobs as processes of this machine, forked from one fork server."""

    name = "process"
    isolates = False
    spans_nodes = False
    scorer = None

    def __init__(self) -> None:
        self._parent: ForkServerClient | None = None

    def __enter__(self) -> Self:
        _remove_stale_folders()
        self._devices = host_devices(self.name)
        self._parent = ForkServerClient()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._parent is not None:
            self._parent.close()
            self._parent = None

    def self_test(self) -> Availability:
        """Linux with process descriptors, torch at hand."""
        if not sys.platform.startswith("linux"):
            return Availability(False, f"it needs Linux; this is {sys.platform}")
        try:
            os.close(os.pidfd_open(os.getpid()))
        except OSError as error:
            return Availability(False, f"it needs process descriptors (Linux 5.3 or newer): {error.strerror}")
        if importlib.util.find_spec("torch") is None:
            return Availability(False, "torch is not installed beside the grader")
        return Availability(True, "no isolation: a submission runs with your own rights")

    def warm(self, like: Job | None = None) -> None:
        """Wait until torch is imported; a parent that died meanwhile is replaced, once."""
        try:
            self._warm_parent().wait_ready()
        except ForkServerLostError:
            self._replace_parent().wait_ready()

    def release(self) -> None:
        """Nothing is kept between attempts but the fork server."""

    def run(self, job: Job, workspace: Workspace, on_progress: Callable[[Progress], None]) -> None:
        """Run a job; see the protocol.

        Raises:
            UsageError: the job needs several nodes; InfraError: this machine failed twice.
        """
        if job.nnodes != 1:
            raise UsageError(
                f"the process runtime has one node, this job needs {job.nnodes}: --runtime docker"
            )
        with contextlib.ExitStack() as leases:
            lease = None
            if job.gpus_per_node:
                # Cores are nobody's here; who needs no GPU waits for nobody.
                lease = leases.enter_context(lease_devices(self._devices, job, _AFTER_S, on_progress))
            self._run(job, lease, workspace, on_progress)

    def _run(
        self, job: Job, lease: Lease | None, workspace: Workspace, on_progress: Callable[[Progress], None]
    ) -> None:
        started = time.monotonic()
        for folder in (workspace.submission, workspace.outputs):
            make_empty(folder)
        write_submission(job.submission, workspace.submission)
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        try:
            spec = _spec(job, lease.gpus if lease is not None else (), workspace, folder)
            lay_out_data(Path(spec.data_dir), job.shared_data, str(job.data_dir.resolve()), job.own_data)
            # The script's own copy: what it writes beside itself must not change what is judged.
            write_submission(job.submission, Path(spec.submission_dir))
            self.warm()
            ready = time.monotonic()
            with quarantining(self._devices):
                devices = self._drive(spec, on_progress)
            ran = time.monotonic()
            collection = collect(Path(spec.output_dir), workspace.outputs, job.limits.output_bytes)
            phases = {"prepare": ready - started, "collect": time.monotonic() - ran}
            facts: dict[str, Any] = {"refused_outputs": [list(one) for one in collection.refused]}
            if lease is not None:
                lease.check()
                phases["lease"] = lease.waited_s
                facts["lease"] = lease.facts
            complete_record(self, workspace, _outputs(collection), phases, facts, devices)
        except OSError as error:
            raise InfraError(f"The run could not be prepared or collected: {error}") from error
        finally:
            _remove(folder)

    def _drive(self, spec: LaunchSpec, on_progress: Callable[[Progress], None]) -> list[dict[str, Any]]:
        started = False
        reports = DeviceReports()

        def pass_on(event: dict[str, Any]) -> None:
            nonlocal started
            started = True
            if not reports.take(event) and event.get("event") == "progress":
                on_progress(read_progress(event))

        limit_s = spec.wall_s + answer_s(len(spec.gpus))
        for last in (False, True):
            parent = self._warm_parent()
            try:
                parent.run(spec, limit_s, pass_on)
                break
            except ForkServerLostError:
                # Never used again: whatever half a run has left would be in the way of the next one.
                parent.close()
                # Lost between two runs, nothing has happened yet that another one could not do.
                if started or last:
                    raise
            except BaseException:
                parent.stop_run()
                raise
        return reports.devices

    def _warm_parent(self) -> ForkServerClient:
        if self._parent is None or not self._parent.alive:
            return self._replace_parent()
        return self._parent

    def _replace_parent(self) -> ForkServerClient:
        if self._parent is not None:
            self._parent.close()
        self._parent = ForkServerClient()
        return self._parent


RUNTIME = ProcessRuntime


def _outputs(collection: Collection) -> list[WrittenFile]:
    return [WrittenFile(file.path, file.size_bytes, file.mtime_unix_s) for file in collection.files]


def _spec(job: Job, gpus: tuple[str, ...], workspace: Workspace, folder: Path) -> LaunchSpec:
    for name in ("submission", "output", "scratch"):
        (folder / name).mkdir(mode=0o700)
    return launch_spec(
        job,
        submission_dir=str(folder / "submission"),
        data_dir=str(folder / "data"),
        output_dir=str(folder / "output"),
        scratch_dir=str(folder / "scratch"),
        record_dir=str(workspace.root.resolve()),
        gpus=gpus,
    )


def _remove(folder: Path) -> None:
    """Remove a folder of a run, also where a script took away its own permissions."""
    # Top down: a folder can be listed, and its entries removed, once it has been opened up.
    with contextlib.suppress(OSError):
        folder.chmod(stat.S_IRWXU)
    for above, names, _files in os.walk(folder):
        for name in names:
            inner = Path(above) / name
            if not inner.is_symlink():
                with contextlib.suppress(OSError):
                    inner.chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_stale_folders() -> None:
    # A grader that was killed outright could not tidy up; its process id in the name says that it is gone.
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if (
                owner.isdigit()
                and not Path(f"/proc/{owner}").exists()
                and folder.lstat().st_uid == os.getuid()
            ):
                _remove(folder)
