"""The runtime for untrusted code: one container for the ranks, another for the scorer, both made for one attempt.

Shares no folder with the containers: what goes in and comes out passes through their standard streams. What may be
done inside is written in `engine.containers`; who starts, watches and ends the ranks is `grader.launch`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import PurePosixPath
from types import TracebackType
from typing import Any, Self

from grader.errors import InfraError
from grader.launch.box import DATA, OUT, RECORD, SCRATCH, WORK
from grader.launch.spec import LaunchSpec
from grader.model.run import WrittenFile
from grader.run import images
from grader.run.engine.client import connect, look
from grader.run.engine.containers import PairKey
from grader.run.engine.data_volumes import DataVolumes
from grader.run.engine.ownership import Ownership
from grader.run.engine.pair import Pair
from grader.run.engine.pool import WarmPool
from grader.run.engine.wire import Wire, WireLostError
from grader.run.layout import lay_out, make_empty
from grader.run.runtime import Availability, Job, Progress
from grader.run.scorer_end import ScorerFolders
from grader.run.workspace import Workspace
from grader.settings import settings

_ENDING_S = 12.0
_FILES_S = 60.0
_LARGEST_RECORD_BYTES = 1 << 30


class PairScorer:
    """Our end of the scorer in a pair's second container."""

    folders = ScorerFolders("/visible", "/hidden", "/tmp/outputs")  # noqa: S108  the container's own

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def ask(self, request: dict[str, Any], wall_s: float) -> dict[str, Any]:
        """Its answer; see the protocol."""
        self._wire.send(request)
        answer = self._wire.event(time.monotonic() + wall_s)
        if answer is None:
            raise InfraError(f"The scorer gave no answer within {wall_s:.0f} s.{self._wire.last_words()}")
        return answer


class DockerRuntime:
    """Runs jobs in containers of the engine that DOCKER_HOST names, or of this machine's."""

    name = "docker"
    isolates = True

    def __init__(self) -> None:
        self._pool: WarmPool | None = None
        self._pair: Pair | None = None
        self._like: PairKey | None = None

    def self_test(self) -> Availability:
        """An engine that answers, and the images of this version."""
        if why := look():
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
            self._pool = WarmPool(
                self._client, self._ownership, settings().pool_pairs, settings().pool_bytes
            )
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
        finally:
            self._ownership.close()
            self._client.close()

    @property
    def scorer(self) -> PairScorer | None:
        """The scorer that holds what the last run left."""
        return PairScorer(self._pair.scorer) if self._pair is not None else None

    def warm(self, like: Job | None = None) -> None:
        """Wait until a pair for such a job is ready; without one, for the kind of the last job."""
        if like is not None:
            self._like = self._key(like)
        if self._like is not None:
            self._open_pool().expect(self._like)
            self._open_pool().wait(self._like)

    def release(self) -> None:
        """Remove the last attempt's containers and have the next ones made, both in the background."""
        pair, self._pair = self._pair, None
        if pair is not None:
            self._open_pool().release(pair)
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
        lay_out(job.submission, workspace.submission)
        self._like = self._key(job)
        self._pair = pair = self._open_pool().take(self._like)
        ready = time.monotonic()
        try:
            ended = self._drive(pair, job, on_progress)
            ran = time.monotonic()
            outputs, refused = _fetch(pair.scorer, job.limits.output_bytes, workspace)
        except BaseException:
            # Ctrl-C too: the learner's processes end with their container, before anything else happens.
            pair.kill()
            self.release()
            raise
        if not ended:
            _write_lost_record(workspace, job)
        self._complete(workspace, outputs, refused, ready - started, time.monotonic() - ran)

    def _drive(self, pair: Pair, job: Job, on_progress: Callable[[Progress], None]) -> bool:
        """Give the job and hear it out; False where memory ran out so badly that nobody could tell."""
        wire = pair.trains[0]
        files = [{"path": file.path, "text": file.text} for file in job.submission.files]
        wire.send({"files": files, "spec": asdict(_spec(job, pair))})
        deadline = time.monotonic() + job.limits.wall_s + _ENDING_S
        try:
            while (event := wire.event(deadline)) is not None:
                if event.get("event") == "ended":
                    return True
                if event.get("event") == "failed":
                    raise InfraError(
                        f"The run could not be supervised: {event.get('reason')}.{wire.last_words()}"
                    )
                if event.get("event") == "progress":
                    on_progress(
                        Progress("run", event["elapsed_s"], tuple(event["steps"]), str(event["line"]))
                    )
        except WireLostError:
            if pair.ran_out_of_memory():
                return False
            raise
        raise InfraError(f"The supervisor gave no answer within {_ENDING_S:.0f} s of the limit.")

    def _complete(
        self,
        workspace: Workspace,
        outputs: list[WrittenFile],
        refused: list[list[str]],
        prepare_s: float,
        collect_s: float,
    ) -> None:
        record = json.loads(workspace.record.read_text(encoding="utf-8"))
        origin = record["environment"].get("started_unix_s", 0.0)
        timed = [
            asdict(WrittenFile(file.path, file.size_bytes, round(file.mtime_s - origin, 3)))
            for file in outputs
        ]
        record |= {"runtime": self.name, "isolated": self.isolates, "outputs": timed}
        record["phases_s"] |= {"prepare": round(prepare_s, 4), "collect": round(collect_s, 4)}
        record["environment"]["refused_outputs"] = refused
        workspace.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    def _key(self, job: Job) -> PairKey:
        return PairKey(
            train_image=images.image_name("train"),
            evaluate_image=images.image_name("evaluate"),
            data_volume=self._volumes.of(job.data_dir),
            hidden_volume=self._volumes.of(job.hidden_dir) if job.hidden_dir is not None else "",
            memory_bytes=job.limits.memory_bytes,
            output_bytes=job.limits.output_bytes,
            nnodes=job.nnodes,
        )

    def _open_pool(self) -> WarmPool:
        if self._pool is None:
            raise InfraError("The docker runtime was not entered.")
        return self._pool


RUNTIME = DockerRuntime


def _spec(job: Job, pair: Pair) -> LaunchSpec:
    return LaunchSpec(
        attempt=job.attempt,
        launcher=job.launcher,
        nproc_per_node=job.nproc_per_node,
        entry_point=job.entry_point,
        argv=job.argv,
        submission_dir=WORK,
        data_dir=DATA,
        output_dir=OUT,
        scratch_dir=SCRATCH,
        record_dir=RECORD,
        wall_s=job.limits.wall_s,
        memory_bytes=job.limits.memory_bytes,
        log_bytes=job.limits.log_bytes,
        seed=job.seed,
        probe=job.probe,
        rank_uid=pair.uid,
        contained=True,
    )


def _fetch(
    scorer: Wire, output_bytes: int, workspace: Workspace
) -> tuple[list[WrittenFile], list[list[str]]]:
    """Take what the second container hands out; mtime_s of the files is Unix time here.

    Raises:
        InfraError: it stopped, or sent what it must not.
    """
    scorer.send({"op": "files", "output_bytes": output_bytes})
    deadline = time.monotonic() + _FILES_S
    outputs: list[WrittenFile] = []
    left = {"record": _LARGEST_RECORD_BYTES, "output": output_bytes}
    while (event := scorer.event(deadline)) is not None:
        if "files" in event:
            return outputs, [[str(name), str(why)] for name, why in event["refused"]]
        if "file" not in event:
            raise InfraError(f"The files of the run could not be brought back.{scorer.last_words()}")
        folder, size = str(event["folder"]), int(event["bytes"])
        left[folder] -= size
        if size < 0 or left[folder] < 0:
            raise InfraError("More came back of the run than may be kept.")
        name = PurePosixPath(str(event["file"]))
        if name.is_absolute() or ".." in name.parts:
            raise InfraError(f"A file came back under a name that leads out of its folder: {name}.")
        if folder == "output":
            path = workspace.outputs / name
            outputs.append(WrittenFile(str(name), size, float(event["mtime_unix_s"])))
        else:
            path = workspace.root.joinpath(*name.parts[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(scorer.take(size, deadline))
    raise InfraError(f"The files of the run did not come back in time.{scorer.last_words()}")


def _write_lost_record(workspace: Workspace, job: Job) -> None:
    """What is known of a run whose supervisor was lost with its ranks, for lack of memory."""
    world = job.nproc_per_node * job.nnodes
    rank: dict[str, Any] = dict.fromkeys(
        ("started_s", "ended_s", "cpu_user_s", "cpu_system_s"), 0.0
    ) | dict.fromkeys(
        ("peak_rss_bytes", "stdout_bytes", "stderr_bytes", "stdout_lines", "trace_bytes", "leftovers"), 0
    )
    rank |= {"exit_code": -9, "killed_by_judge": False, "output_cut": False, "trace_cut": False}
    rank |= {"waiting": None, "failure": None}
    record = {
        "runtime": "",
        "launcher": job.launcher,
        "isolated": True,
        "world_size": world,
        "ending": "out_of_memory",
        "ending_reason": "The kernel ended all processes of the container: there was no memory left.",
        "wall_s": 0.0,
        "deadline_s": job.limits.wall_s,
        "ranks": [rank | {"rank": number} for number in range(world)],
        "outputs": [],
        "phases_s": {},
        "environment": {"num_cores": len(os.sched_getaffinity(0))},
        "loopback_bytes": None,
    }
    workspace.record.write_text(json.dumps(record), encoding="utf-8")
