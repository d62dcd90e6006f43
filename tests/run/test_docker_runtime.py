"""What the container runtime promises beyond the protocol: isolation, a fresh pair for each attempt, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from grader.errors import InfraError
from grader.launch.servers.container_server import FIRST_RANK_UID, NUM_RANK_UIDS, STORE_UID
from grader.model.run import Ending
from grader.run.engine.ownership import OWNER, STATE, Ownership
from grader.run.runtimes.docker import DockerRuntime
from grader.run.script_runs import RunScript, limits_with, make_job, run_script
from grader.run.workspace import Workspace
from grader.settings import settings

pytestmark = [pytest.mark.usefixtures("docker_images"), pytest.mark.slow]


@pytest.fixture(scope="module")
def warm_docker(docker_images: object) -> Iterator[DockerRuntime]:
    with DockerRuntime() as runtime:
        yield runtime


@pytest.fixture
def run(warm_docker: DockerRuntime, tmp_path: Path) -> RunScript:
    return lambda script, **options: run_script(warm_docker, tmp_path, script, **options)


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    client = docker.from_env(timeout=60)
    yield client
    client.close()


def things(engine: docker.DockerClient, owner: str = "") -> list[str]:
    """Containers, networks and volumes of this site that belong to a grader, or to one grader."""
    own = Ownership(settings().state_dir)
    state = own.state
    own.close()
    filters = {"label": [f"{STATE}={state}", f"{OWNER}={owner}" if owner else OWNER]}
    found = [one["Names"][0] for one in engine.api.containers(all=True, filters=filters)]
    found += [one["Name"] for one in engine.api.networks(filters=filters)]
    return found + [one["Name"] for one in engine.api.volumes(filters=filters)["Volumes"] or ()]


# -- what a rank is ----------------------------------------------------------------------------------------------------


def test_a_rank_has_no_rights_no_network_and_no_way_to_its_supervisor(run: RunScript) -> None:
    ran = run(
        """
        import json, os, socket

        def status(pid):
            lines = open(f"/proc/{pid}/status").read().splitlines()
            return dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)

        def attempt(action):
            try:
                return str(action())
            except OSError as error:
                return type(error).__name__

        mine = status("self")
        users = {pid: int(status(pid)["Uid"].split()[0]) for pid in os.listdir("/proc") if pid.isdigit()}
        roots = [pid for pid, uid in users.items() if uid == 0]
        print(json.dumps({
            "me": [os.getuid(), mine["CapEff"], mine["NoNewPrivs"], mine["Seccomp"]],
            "users": sorted(set(users.values())),
            "signal": [attempt(lambda: os.kill(int(pid), 0)) for pid in roots],
            "memory": [attempt(lambda: open(f"/proc/{pid}/mem", "rb")) for pid in roots],
            "record": [attempt(lambda: os.listdir("/record")), attempt(lambda: os.listdir("/hidden"))],
            "writes": [attempt(lambda: open(path, "w")) for path in ("/x", "/etc/x", "/opt/grader/x", "/data/x")],
            "links": os.listdir("/sys/class/net"),
            "connect": attempt(lambda: socket.create_connection(("192.0.2.1", 80), 2)),
            "setuid": attempt(lambda: os.setuid(0)),
        }))
        """,
        nproc_per_node=1,
    )
    seen = json.loads(ran.out())
    uid = seen["me"][0]
    assert FIRST_RANK_UID <= uid < FIRST_RANK_UID + NUM_RANK_UIDS
    assert seen["me"][1:] == ["0000000000000000", "1", "2"]
    assert seen["users"] == [0, STORE_UID, uid]
    assert len(seen["signal"]) >= 2, "the supervisor and its parent"
    assert set(seen["signal"]) == set(seen["memory"]) == {"PermissionError"}
    assert seen["record"] == ["PermissionError", "FileNotFoundError"]
    assert set(seen["writes"]) <= {"OSError", "PermissionError"}
    assert seen["links"] == ["lo"]
    assert seen["connect"] == "OSError"
    assert seen["setuid"] == "PermissionError"
    assert ran.record.isolated


def test_the_record_counts_what_ranks_sent_each_other_and_held(run: RunScript) -> None:
    ran = run("""
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        big = torch.ones(1 << 20)
        for _ in range(4):
            dist.all_reduce(big)
        dist.destroy_process_group()
    """)
    assert ran.record.ending is Ending.COMPLETED, ran.err()
    # Two ranks each send half of it and then the other half's sum: 4 MiB a rank and round.
    assert ran.record.loopback_bytes is not None
    assert 4 * 2 * (4 << 20) <= ran.record.loopback_bytes < 2 * 4 * 2 * (4 << 20)
    assert ran.record.environment["memory_peak_bytes"] > 0
    quiet = run("print('nothing sent')")
    assert quiet.record.loopback_bytes is not None
    assert quiet.record.loopback_bytes < 100_000


def test_memory_that_no_process_holds_is_the_runs_too(run: RunScript) -> None:
    ran = run(
        """
        with open("/dev/shm/filled", "wb") as file:
            for _ in range(64):
                file.write(b"x" * (16 << 20))
        import time; time.sleep(20)
        """,
        nproc_per_node=1,
        limits=limits_with(memory_bytes=512 << 20),
    )
    assert ran.record.ending is Ending.OUT_OF_MEMORY or "No space left" in ran.err()


def test_compiled_models_run(run: RunScript) -> None:
    ran = run(
        """
        import torch
        model = torch.compile(torch.nn.Linear(4, 2))
        print(model(torch.ones(3, 4)).shape)
        """,
        nproc_per_node=1,
    )
    assert ran.out() == "torch.Size([3, 2])\n", ran.err()


# -- pairs and their pool ----------------------------------------------------------------------------------------------


def test_every_attempt_has_containers_of_its_own(run: RunScript, engine: docker.DockerClient) -> None:
    script = "import os; open('/tmp/mark', 'a').write('x'); print(os.path.getsize('/tmp/mark'), os.uname().nodename)"
    first, second = run(script, nproc_per_node=1), run(script, nproc_per_node=1)
    assert first.out() == second.out() == "1 job\n"


def test_an_idle_pair_that_was_taken_away_is_replaced(warm_docker: DockerRuntime, tmp_path: Path) -> None:
    warm_docker.warm(make_job(tmp_path, "like", "pass", nproc_per_node=1))
    client = docker.from_env(timeout=60)
    for container in client.containers.list(filters={"label": [f"{OWNER}={warm_docker.owner}"]}):
        container.kill()
    client.close()
    assert run_script(warm_docker, tmp_path, "print('still here')", nproc_per_node=1).out() == "still here\n"


def test_a_container_that_vanishes_in_the_middle_of_a_run_is_our_fault_and_the_next_run_works(
    warm_docker: DockerRuntime, tmp_path: Path
) -> None:
    def take_away(_progress: object) -> None:
        client = docker.from_env(timeout=60)
        for container in client.containers.list(filters={"label": [f"{OWNER}={warm_docker.owner}"]}):
            if "train" in str(container.name):
                container.kill()
        client.close()

    (tmp_path / "lost").mkdir()
    with pytest.raises(InfraError, match="has ended"):
        warm_docker.run(
            make_job(tmp_path, "lost", "import time; time.sleep(30)"), Workspace(tmp_path / "lost"), take_away
        )
    assert run_script(warm_docker, tmp_path, "print('again')", nproc_per_node=1).out() == "again\n"


def test_a_run_that_cannot_be_ended_from_inside_is_ended_from_outside_and_has_its_verdict(
    warm_docker: DockerRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a crowd of processes keeps the supervisor from its turn: here we lose patience before its limit."""
    monkeypatch.setattr("grader.run.runtimes.docker.answer_s", lambda _num_gpus: -50.0)
    script = "import os, time; print('here', flush=True); os.fork(); time.sleep(40)"
    ran = run_script(warm_docker, tmp_path, script, limits=limits_with(wall_s=56.0))
    assert ran.record.ending is Ending.TIMED_OUT
    assert "nothing more of it could be told" in ran.record.ending_reason
    assert [rank.killed_by_judge for rank in ran.record.ranks] == [True, True]
    monkeypatch.undo()
    assert run_script(warm_docker, tmp_path / "next", "print('again')", nproc_per_node=1).out() == "again\n"


# -- nothing stays -----------------------------------------------------------------------------------------------------


def test_leaving_takes_everything_away(
    docker_images: object, engine: docker.DockerClient, tmp_path: Path
) -> None:
    with DockerRuntime() as runtime:
        owner = runtime.owner
        run_script(runtime, tmp_path, "print('x')", nproc_per_node=1)
        runtime.warm()
        assert things(engine, owner)
    assert things(engine, owner) == []


GRADER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from grader.run.runtimes.docker import DockerRuntime
from grader.run.workspace import Workspace
from grader.run.script_runs import run_script
with DockerRuntime() as runtime:
    print(runtime.owner, flush=True)
    while True:
        run_script(runtime, Path(sys.argv[2]), "import time; print('up', flush=True); time.sleep(1)", nproc_per_node=1)
        print("ran", flush=True)
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.3, 1.5, 4.0, 7.0])
def test_what_a_killed_grader_leaves_is_gone_after_the_next_start(
    delay_s: float, docker_images: object, engine: docker.DockerClient, tmp_path: Path, repository: Path
) -> None:
    command = [sys.executable, "-c", GRADER, str(repository), str(tmp_path)]
    grader = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert grader.stdout is not None
    owner = grader.stdout.readline().strip()
    time.sleep(delay_s)
    os.killpg(grader.pid, signal.SIGKILL)
    grader.wait()
    grader.stdout.close()
    deadline = time.monotonic() + 20
    while True:
        with DockerRuntime():
            pass
        # What the engine was still making for the dead one appears a moment later, and goes with the start after.
        if not things(engine, owner) or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    assert things(engine, owner) == []
    assert not (settings().state_dir / "owners" / owner).exists()
