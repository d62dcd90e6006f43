"""A box as a child process: words and bytes both ways, and an end for everything below it.

The last test runs the real box on this machine without a container: it proves the conversation, the folders and what is
given back, and nothing about isolation (`test_apptainer_runtime` does that, with containers).
"""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from grader.launch.ranks.environment import clean_environment
from grader.launch.spec import LaunchSpec
from grader.run.apptainer.pipe_connection import PipeConnection
from grader.run.container_connection import ConnectionLostError
from grader.run.script_runs import processes_with

Open = Callable[[str], PipeConnection]


@pytest.fixture
def open_connection() -> Iterator[Open]:
    """A connection to a Python program given as text; ended afterwards."""
    connections: list[PipeConnection] = []

    def start(text: str, *words: str) -> PipeConnection:
        command = [sys.executable, "-u", "-c", textwrap.dedent(text), *words]
        connections.append(PipeConnection("The program", command, clean_environment(), {}))
        return connections[-1]

    yield start
    for connection in connections:
        connection.kill()
        connection.close()


def soon(seconds: float = 30.0) -> float:
    return time.monotonic() + seconds


def test_lines_and_the_bytes_between_them_arrive_as_they_were_sent(open_connection: Open) -> None:
    connection = open_connection("""
        import json, sys
        question = json.loads(sys.stdin.readline())
        data = bytes(range(256)) * question["times"]
        sys.stdout.buffer.write(json.dumps({"bytes": len(data)}).encode() + b"\\n" + data + b"no json\\n[1]\\n")
    """)
    connection.send({"times": 8000})
    assert connection.event(soon()) == {"bytes": 2_048_000}
    assert connection.take(2_048_000, soon()) == bytes(range(256)) * 8000
    assert connection.event(soon()) == {}
    assert connection.event(soon()) == {}


def test_the_end_of_a_box_comes_with_its_last_words(open_connection: Open) -> None:
    connection = open_connection("import sys; print('{\"a\": 1}'); sys.exit('no room left')")
    assert connection.event(soon()) == {"a": 1}
    with pytest.raises(ConnectionLostError, match=r"has ended\. Its last words:\nno room left"):
        connection.event(soon())


def test_a_box_that_is_silent_or_deaf_is_not_waited_for(open_connection: Open) -> None:
    connection = open_connection("import time; time.sleep(600)")
    assert connection.event(time.monotonic() + 0.1) is None
    with pytest.raises(ConnectionLostError, match="does not listen"):
        connection.send({"files": "x" * (4 << 20)}, limit_s=0.2)


def test_a_line_without_an_end_is_cut_off(open_connection: Open) -> None:
    connection = open_connection("import sys\nwhile True: sys.stdout.write('x' * 65536)")
    with pytest.raises(ConnectionLostError, match="without an end"):
        connection.event(soon())


def test_nothing_below_a_box_outlives_it(open_connection: Open) -> None:
    connection = open_connection("""
        import os, time
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.execvp("sleep", ["sleep", "5432" + "1.75"])
                time.sleep(600)
        time.sleep(1)
        print('{"ready": true}')
        time.sleep(600)
    """)
    assert connection.event(soon()) == {"ready": True}
    assert len(processes_with("54321.75")) == 3
    connection.kill()
    assert processes_with("54321.75") == []
    assert not connection.alive


@pytest.mark.slow
def test_a_box_on_this_machine_lays_out_runs_records_and_gives_back(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("submission", "data", "output", "scratch", "record")}
    for folder in folders.values():
        folder.mkdir()
    script = """
        import os
        print("rank", os.environ["RANK"])
        os.makedirs(os.environ["OUTPUT_DIR"] + "/closed")
        open(os.environ["OUTPUT_DIR"] + "/closed/result.txt", "w").write("kept")
        os.chmod(os.environ["OUTPUT_DIR"] + "/closed", 0)
    """
    fields: dict[str, Any] = {f"{name}_dir": str(folder) for name, folder in folders.items()}
    spec = LaunchSpec(
        attempt="test",
        launcher="fork",
        nproc_per_node=1,
        entry_point="train.py",
        argv=(),
        **fields,
        wall_s=60.0,
        probe=False,
    )
    command = [sys.executable, "-u", "-m", "grader.launch.servers.container_server"]
    package = str(Path(__file__).resolve().parent.parent.parent)
    connection = PipeConnection("The container", command, clean_environment() | {"PYTHONPATH": package}, {})
    try:
        assert (connection.event(soon(120)) or {}).get("event") == "ready"
        files = [{"path": "train.py", "text": textwrap.dedent(script)}]
        connection.send({"files": files, "spec": asdict(spec), "give_back": True})
        said: list[Any] = []
        while not said or said[-1] not in ("given_back", "failed", "silent"):
            said.append((connection.event(soon(60)) or {"event": "silent"}).get("event"))
        assert said[-2:] == ["ended", "given_back"]
    finally:
        connection.kill()
        connection.close()
    record = json.loads((folders["record"] / "record.json").read_text())
    assert record["ending"] == "completed", record
    assert (folders["record"] / "logs" / "rank0.out").read_text() == "rank 0\n"
    closed = folders["output"] / "closed"
    assert closed.stat().st_mode & 0o777 == 0o700
    assert (closed / "result.txt").read_text() == "kept"
