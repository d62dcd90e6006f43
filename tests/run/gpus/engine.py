"""A container engine of a test's own that believes in GPUs: NVIDIA's hook on its path is `hook.sh`.

It has the images of this machine's engine without copying them: links lead to the layers, which no engine changes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from grader.run.engine.client import engine_problem
from tests.c_compiler import compile_c

HERE = Path(__file__).parent
_START_S = 60.0


@contextlib.contextmanager
def engine_with_gpus(folder: Path) -> Iterator[str]:
    """Start it, with everything of its own below a folder; gives its address."""
    if os.getuid() or shutil.which("dockerd") is None or shutil.which("nsenter") is None:
        pytest.skip("starting an engine takes root, dockerd and nsenter")
    path = folder / "path"
    compile_c(HERE / "driver.c", to=path / "libnvidia-ml.so.1")
    hook = path / "nvidia-container-runtime-hook"
    shutil.copy(HERE / "hook.sh", hook)
    hook.chmod(0o755)
    address = f"unix://{folder / 'engine.sock'}"
    _share_images(folder / "data")
    with (folder / "log").open("w") as log:
        engine = subprocess.Popen(
            [
                "dockerd", "--host", address, "--data-root", folder / "data", "--exec-root", folder / "exec",
                "--pidfile", folder / "pid", "--bridge", "none", "--iptables=false", "--ip6tables=false",
            ],
            env=os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            _wait_for(address, engine, folder / "log")
            yield address
        finally:
            engine.terminate()
            try:
                engine.wait(30)
            except subprocess.TimeoutExpired:
                engine.kill()
                engine.wait()


def _share_images(data: Path) -> None:
    with contextlib.closing(docker.from_env()) as client:
        engine = client.info()
    if engine["Driver"] != "overlay2":
        pytest.skip(
            f"this machine's engine keeps its images by {engine['Driver']}; layers of overlay2 can be shared"
        )
    theirs, images = Path(engine["DockerRootDir"]), Path("image/overlay2")
    for part in ("imagedb", "layerdb/sha256"):
        shutil.copytree(theirs / images / part, data / images / part)
    shutil.copy(theirs / images / "repositories.json", data / images)
    shutil.copytree(theirs / "overlay2/l", data / "overlay2/l", symlinks=True)
    for name in (data / images / "layerdb/sha256").glob("*/cache-id"):
        layer = name.read_text()
        (data / "overlay2" / layer).symlink_to(theirs / "overlay2" / layer)


def _wait_for(address: str, engine: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", address)
        while engine_problem():
            assert engine.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.2)
