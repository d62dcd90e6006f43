"""Runs on two nodes: ranks of both are one world, what happens on one is told of both, nothing else is reachable."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.errors import InfraError, UsageError
from grader.model.run import Ending
from grader.model.run_options import Options
from grader.pipeline import Pipeline
from grader.run.engine.ownership import OWNER
from grader.run.runtime import Progress
from grader.run.runtimes.docker import DockerRuntime
from grader.run.runtimes.process import ProcessRuntime
from grader.run.script_runs import RunScript, ScriptRun, limits_with, make_job, run_script
from grader.run.workspace import Workspace

NODES = {"nnodes": 2, "nproc_per_node": 1}
# Different in any two runs: addresses and ports that came out, and the launcher's own folder for error files.
VARYING = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"}


@pytest.fixture(scope="module")
def several(docker_images: object) -> Iterator[DockerRuntime]:
    with DockerRuntime() as runtime:
        yield runtime


@pytest.fixture
def run(several: DockerRuntime, tmp_path: Path) -> Iterator[RunScript]:
    yield lambda script, **options: run_script(several, tmp_path, script, **(NODES | options))
    several.release()


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    client = docker.from_env(timeout=60)
    yield client
    client.close()


def networks(engine: docker.DockerClient, owner: str) -> dict[str, dict[str, Any]]:
    """Networks on the engine that belong to one grader, by name."""
    return {one["Name"]: one for one in engine.api.networks(filters={"label": f"{OWNER}={owner}"})}


def gone(engine: docker.DockerClient, owner: str, name: str, limit_s: float = 60.0) -> bool:
    """Whether a network is removed within a while; it is done in the background."""
    deadline = time.monotonic() + limit_s
    while name in networks(engine, owner) and time.monotonic() < deadline:
        time.sleep(0.1)
    return name not in networks(engine, owner)


# -- one world ---------------------------------------------------------------------------------------------------------

TRAINING = """
import json, os, socket
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(1000, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(50):
    optimizer.zero_grad()
    model(torch.full((1, 1000), float(rank))).sum().backward()
    optimizer.step()
facts = {
    "environment": dict(os.environ),
    "group": [rank, dist.get_world_size()],
    "gradient": model.module.weight.grad.unique().tolist(),
    "weights": model.module.weight.double().sum().item(),
    "host": [socket.gethostname(), socket.gethostbyname(socket.gethostname())],
}
with open(os.environ["OUTPUT_DIR"] + f"/facts{rank}.json", "w") as file:
    json.dump(facts, file)
print("rank", rank, flush=True)
dist.barrier()
dist.destroy_process_group()
"""


def facts_of(ran: ScriptRun, num_ranks: int) -> list[dict[str, Any]]:
    assert ran.record.ending is Ending.COMPLETED, ran.record.ending_reason + ran.err(0)
    return [json.loads(ran.output(f"facts{rank}.json")) for rank in range(num_ranks)]


@pytest.mark.usefixtures("docker_images")
@pytest.mark.slow
def test_two_ranks_on_each_of_two_nodes_train_one_model(run: RunScript) -> None:
    ran = run(TRAINING, nproc_per_node=2, limits=limits_with(wall_s=120.0))
    facts = facts_of(ran, 4)
    assert [one["group"] for one in facts] == [[rank, 4] for rank in range(4)]
    assert [one["gradient"] for one in facts] == [[1.5]] * 4, "the mean of 0, 1, 2 and 3"
    assert len({one["weights"] for one in facts}) == 1
    hosts = [tuple(one["host"]) for one in facts]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]
    assert [host[0] for host in hosts] == ["node0", "node0", "node1", "node1"]
    expected = [
        ("RANK", "0 1 2 3"),
        ("LOCAL_RANK", "0 1 0 1"),
        ("GROUP_RANK", "0 0 1 1"),
        ("ROLE_RANK", "0 1 2 3"),
        ("WORLD_SIZE", "4 4 4 4"),
        ("LOCAL_WORLD_SIZE", "2 2 2 2"),
        ("GROUP_WORLD_SIZE", "2 2 2 2"),
        ("ROLE_WORLD_SIZE", "4 4 4 4"),
    ]
    for name, values in expected:
        assert [one["environment"][name] for one in facts] == values.split(), name
    assert {one["environment"]["MASTER_ADDR"] for one in facts} == {hosts[0][1]}
    record = ran.record
    assert (record.world_size, record.num_nodes) == (4, 2)
    assert [(rank.rank, rank.node) for rank in record.ranks] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert [ran.out(rank).strip() for rank in range(4)] == [f"rank {rank}" for rank in range(4)]
    # Every step every rank sends at least its share of 1,000 gradients of four bytes.
    assert record.loopback_bytes is not None
    assert record.loopback_bytes > 50 * 4 * 1000 * 4


@pytest.mark.usefixtures("docker_images")
@pytest.mark.slow
def test_ranks_get_the_environment_that_torchrun_gives_them(run: RunScript) -> None:
    forked = facts_of(run(TRAINING), 2)
    oracle = facts_of(run(TRAINING, launcher="torchrun", probe=True, limits=limits_with(wall_s=240.0)), 2)
    for ours, theirs in zip(forked, oracle, strict=True):
        assert ours["environment"].keys() == theirs["environment"].keys()
        fixed = ours["environment"].keys() - VARYING
        assert {n: ours["environment"][n] for n in fixed} == {n: theirs["environment"][n] for n in fixed}
        assert ours["environment"]["MASTER_ADDR"] == forked[0]["host"][1]
        assert theirs["environment"]["MASTER_ADDR"] == oracle[0]["host"][1]


# -- what happens on one node is told of both --------------------------------------------------------------------------


@pytest.mark.usefixtures("docker_images")
@pytest.mark.slow
def test_a_deadlock_names_rank_and_node_of_all(run: RunScript) -> None:
    ran = run("""
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        if dist.get_rank() == 0:
            dist.barrier()
        else:
            for _ in range(2):
                dist.all_reduce(torch.ones(3))
    """)
    assert ran.record.ending is Ending.DEADLOCKED
    assert "rank 0 on node 0 waits at train.py:5 (barrier)" in ran.record.ending_reason
    assert "rank 1 on node 1 waits at train.py:8 (all_reduce)" in ran.record.ending_reason
    assert [rank.waiting.operation for rank in ran.record.ranks if rank.waiting] == ["barrier", "all_reduce"]
    assert all(rank.killed_by_judge for rank in ran.record.ranks)
    assert ran.record.wall_s < 30.0


@pytest.mark.usefixtures("docker_images")
@pytest.mark.slow
def test_a_node_that_computes_in_silence_keeps_the_run_alive(run: RunScript) -> None:
    ran = run("""
        import time, torch.distributed as dist
        dist.init_process_group("gloo")
        if dist.get_rank() == 1:
            end = time.monotonic() + 25
            while time.monotonic() < end:
                pass
        dist.barrier()
        print("met", flush=True)
    """)
    assert ran.record.ending is Ending.COMPLETED, ran.record.ending_reason
    assert [ran.out(rank) for rank in range(2)] == ["met\n", "met\n"]


@pytest.mark.usefixtures("docker_images")
@pytest.mark.slow
def test_a_crash_on_the_second_node_is_named_and_ends_the_first(run: RunScript) -> None:
    ran = run("""
        import time, torch.distributed as dist
        dist.init_process_group("gloo")
        if dist.get_rank() == 1:
            raise ValueError("no")
        time.sleep(50)
    """)
    assert ran.record.ending is Ending.CRASHED
    assert ran.record.ending_reason == "Rank 1 on node 1 raised ValueError at train.py:5 (exit code 1)."
    assert [rank.killed_by_judge for rank in ran.record.ranks] == [True, False]
    assert ran.record.wall_s < 20.0


@pytest.mark.usefixtures("docker_images")
@pytest.mark.slow
def test_the_limit_ends_both_nodes(run: RunScript) -> None:
    ran = run(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
        limits=limits_with(wall_s=3.0),
    )
    assert ran.record.ending is Ending.TIMED_OUT
    assert all(rank.killed_by_judge for rank in ran.record.ranks)
    assert max(rank.ended_s for rank in ran.record.ranks) < 3.0 + 5.0


@pytest.mark.usefixtures("docker_images")
@pytest.mark.slow
def test_a_node_that_dies_ends_the_run_with_a_clear_reason(
    several: DockerRuntime, engine: docker.DockerClient, tmp_path: Path
) -> None:
    wired: list[str] = []

    def kill(progress: Progress) -> None:
        if progress.line == "up" and not wired:
            running = engine.containers.list(filters={"label": f"{OWNER}={several.owner}"})
            (node,) = (one for one in running if str(one.name).startswith("grader-train1"))
            wired.extend(node.attrs["NetworkSettings"]["Networks"])
            node.kill()

    script = """
        import time, torch.distributed as dist
        dist.init_process_group("gloo")
        print("up", flush=True)
        time.sleep(50)
    """
    (tmp_path / "attempt").mkdir()
    with pytest.raises(InfraError, match="Node 1 was lost in the middle of the run"):
        several.run(make_job(tmp_path, "killed", script, **NODES), Workspace(tmp_path / "attempt"), kill)
    several.release()
    (network,) = wired
    assert network.startswith("grader-")
    assert gone(engine, several.owner, network)


# -- nothing else is reachable -----------------------------------------------------------------------------------------

SEARCH = """
import json, os, socket, sys
import torch.distributed as dist

dist.init_process_group("gloo")
port = int(sys.argv[1])

def attempt(action):
    try:
        return str(action())
    except OSError as error:
        return type(error).__name__

routes = [line.split() for line in open("/proc/net/route").read().splitlines()[1:]]
gateways = {socket.inet_ntoa(bytes.fromhex(r[2])[::-1]) for r in routes} - {"0.0.0.0"}
own = os.environ["MASTER_ADDR"].rsplit(".", 1)[0]
past_routes = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
past_routes.settimeout(3)
past_routes.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
past_routes.setsockopt(socket.SOL_SOCKET, socket.SO_DONTROUTE, 1)
print(json.dumps({
    "own": os.environ["MASTER_ADDR"],
    "links": sorted(name for _, name in socket.if_nameindex()),
    "host": [attempt(lambda: socket.create_connection((one, port), 3)) for one in gateways | {own + ".1"}],
    "past_routes": attempt(lambda: past_routes.connect((own + ".1", port))),
    "datagrams": [attempt(lambda: socket.socket(family, socket.SOCK_DGRAM | flags, protocol))
                  for family in (socket.AF_INET, socket.AF_INET6)
                  for protocol in (0, socket.IPPROTO_UDP) for flags in (0, socket.SOCK_NONBLOCK)],
    "raw": attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
    "six": attempt(lambda: open("/proc/net/if_inet6").read()),
    "name": attempt(lambda: socket.gethostbyname("no-such-node")),
}), flush=True)
dist.barrier()
"""


@contextlib.contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """A service of this machine that listens on all its addresses, and whoever called it."""
    callers: list[str] = []
    with socket.create_server(("", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, address = server.accept()
                    callers.append(address[0])
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 5).close()
        deadline = time.monotonic() + 5
        while not callers and time.monotonic() < deadline:
            time.sleep(0.01)
        assert callers == ["127.0.0.1"], "it answers"
        callers.clear()
        yield port, callers
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.usefixtures("docker_images")
@pytest.mark.slow
def test_ranks_reach_each_other_and_nothing_else(
    several: DockerRuntime, engine: docker.DockerClient, run: RunScript
) -> None:
    with listening() as (port, callers):
        ran = run(SEARCH, argv=(str(port),))
    assert ran.record.ending is Ending.COMPLETED, ran.err(0)
    own = ipaddress.ip_address(json.loads(ran.out())["own"])
    (network,) = (
        one
        for one in networks(engine, several.owner).values()
        if any(own in ipaddress.ip_network(part["Subnet"]) for part in one["IPAM"]["Config"])
    )
    assert network["Internal"]
    for rank in range(2):
        seen = json.loads(ran.out(rank))
        assert seen["links"] == ["eth0", "lo"]
        assert set(seen["host"]) | {seen["past_routes"]} <= {"TimeoutError", "OSError", "ConnectionError"}
        assert set(seen["datagrams"]) == {"PermissionError"}
        assert seen["raw"] == "PermissionError"
        assert seen["six"] == ""
        assert seen["name"] == "gaierror"
    assert callers == []
    several.release()
    assert gone(engine, several.owner, network["Name"])


# -- who cannot --------------------------------------------------------------------------------------------------------


def test_the_process_runtime_names_the_one_that_can(tmp_path: Path) -> None:
    job = make_job(tmp_path, "several", "print()", **NODES)
    with pytest.raises(UsageError, match="--runtime docker"):
        ProcessRuntime().run(job, Workspace(tmp_path / "attempt"), lambda progress: None)
    pipeline = Pipeline("process")
    with pytest.raises(UsageError, match="--runtime docker"):
        pipeline.setting(load_task("ddp-toy"), Options(nnodes=2))
