"""The runtime without isolation: ranks are plain processes of this machine, with the judge's own rights.

For demos, tests and trusted reference runs. Isolates nothing and says so; what it promises is the same launch, the
same record, the same limits in time and output, and that nothing stays behind.
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
from grader.launch.data_folder import lay_out_data
from grader.launch.spec import LaunchSpec
from grader.model.run import WrittenFile
from grader.run.fork_server_client import ForkServerClient, ForkServerLostError
from grader.run.launch_specs import launch_spec
from grader.run.output_collection import Collection, collect
from grader.run.progress_events import read_progress
from grader.run.record_completion import complete_record
from grader.run.runtime import Availability, Job, Progress
from grader.run.submission_files import make_empty, write_submission
from grader.run.workspace import Workspace

_ENDING_S = 12.0
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
        started = time.monotonic()
        for folder in (workspace.submission, workspace.outputs):
            make_empty(folder)
        write_submission(job.submission, workspace.submission)
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        try:
            spec = _spec(job, workspace, folder)
            lay_out_data(Path(spec.data_dir), job.shared_data, str(job.data_dir.resolve()), job.own_data)
            # The script's own copy: what it writes beside itself must not change what is judged.
            write_submission(job.submission, Path(spec.submission_dir))
            self.warm()
            ready = time.monotonic()
            self._drive(spec, on_progress)
            ran = time.monotonic()
            collection = collect(Path(spec.output_dir), workspace.outputs, job.limits.output_bytes)
            self._complete(workspace, collection, ready - started, time.monotonic() - ran)
        except OSError as error:
            raise InfraError(f"The run could not be prepared or collected: {error}") from error
        finally:
            _remove(folder)

    def _drive(self, spec: LaunchSpec, on_progress: Callable[[Progress], None]) -> None:
        started = False

        def pass_on(event: dict[str, Any]) -> None:
            nonlocal started
            started = True
            if event.get("event") == "progress":
                on_progress(read_progress(event))

        parent = self._warm_parent()
        try:
            parent.run(spec, spec.wall_s + _ENDING_S, pass_on)
        except ForkServerLostError:
            # Never used again: whatever half a run has left would be in the way of the next one.
            parent.close()
            if started:
                raise
            # It was lost between two runs, so nothing has happened yet that another one could not do.
            parent = self._replace_parent()
            parent.run(spec, spec.wall_s + _ENDING_S, pass_on)
        except BaseException:
            parent.stop_run()
            raise

    def _complete(
        self, workspace: Workspace, collection: Collection, prepare_s: float, collect_s: float
    ) -> None:
        outputs = [WrittenFile(file.path, file.size_bytes, file.mtime_unix_s) for file in collection.files]
        refused = [list(one) for one in collection.refused]
        phases = {"prepare": prepare_s, "collect": collect_s}
        complete_record(self, workspace, outputs, phases, {"refused_outputs": refused})

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


def _spec(job: Job, workspace: Workspace, folder: Path) -> LaunchSpec:
    for name in ("submission", "output", "scratch"):
        (folder / name).mkdir(mode=0o700)
    return launch_spec(
        job,
        submission_dir=str(folder / "submission"),
        data_dir=str(folder / "data"),
        output_dir=str(folder / "output"),
        scratch_dir=str(folder / "scratch"),
        record_dir=str(workspace.root.resolve()),
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
