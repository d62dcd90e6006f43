"""Build the images through the engine's command line, with BuildKit: secrets in no layer, layers shared and cached.

Says each step as it begins. Never writes an address of an index into a file that stays, a layer or a history.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from grader.errors import InfraError
from grader.run.devices.torch_build import ASK, TorchBuild
from grader.run.engine.client import connect, engine_errors
from grader.run.image_context import BASE_RECIPE, recipe_path
from grader.run.images import (
    BASE_LABEL,
    KIND_LABEL,
    TAG_LABEL,
    TORCH_LABEL,
    base_name,
    current_context,
    image_name,
    image_states,
    moving_name,
)
from grader.run.pip_config import read_pip_config

_BUILD_S, _BASE_S, _ASK_S, _LABEL_S = 3600.0, 1200.0, 20.0, 300.0
_STEP = re.compile(r"#\d+ \[(?:[^\]]* )?(\d+/\d+)\] (.*)")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_LAST_LINES = 15
_STEP_CHARS = 90

Report = Callable[[str], object]


def build(
    kinds: Sequence[str],
    report: Report,
    *,
    base: str | None = None,
    offline: bool = False,
    fresh: bool = False,
) -> None:
    """Build what the engine does not have yet; returns at once when all is there. Each is then `:current`.

    Args:
        kinds: which images.
        report: is given one line per step.
        base: base image; None for the recipes' own.
        offline: make the base image from Debian's packages and build upon that.
        fresh: make or pull the base anew, for its security updates, and build upon that.

    Raises:
        InfraError: no engine, no BuildKit, or a build failed (its last lines are in the message).
    """
    wanted = [state.kind for state in image_states(tuple(kinds)) if fresh or state.state != "present"]
    if wanted:
        _build_all(wanted, report, base, offline, fresh)
    if "train" in kinds:
        label_torch(image_name("train"), report)
    with (
        contextlib.closing(connect()) as client,
        engine_errors("The container engine did not name its images"),
    ):
        for kind in kinds:
            name, _, tag = moving_name(kind).partition(":")
            client.images.get(image_name(kind)).tag(name, tag)


def label_torch(name: str, report: Report) -> None:
    """Write into an image's label what its PyTorch runs on, unless it says so already.

    Raises:
        InfraError: there is no such image, its PyTorch can't be asked, or the engine makes no label.
    """
    with contextlib.closing(connect()) as client, engine_errors(f"The engine did not show the image {name}"):
        labels = client.images.get(name).labels
    if TORCH_LABEL in labels:
        return
    report("train: asking its PyTorch which GPUs it has kernels for")
    docker = _docker_command()
    asked = [docker, "run", "--rm", "--network", "none", "--user", "65534", name, "python", "-c", ASK]
    code, last = _run(asked, _LABEL_S, lambda _line: None)
    build = TorchBuild.parse(last)
    if code or build is None:
        raise InfraError(f"The PyTorch of {name} does not say which GPUs it has kernels for:\n{last}")
    with tempfile.TemporaryDirectory(prefix="grader-images-") as folder:
        Path(folder, "Dockerfile").write_text(f"FROM {name}\n", encoding="utf-8")
        command = [docker, "build", "--label", f"{TORCH_LABEL}={build}", "--tag", name, folder]
        code, last = _run(command, _LABEL_S, lambda _line: None, DOCKER_BUILDKIT="1")
    if code:
        raise InfraError(f"The label of {name} was not written. The last lines of the build:\n{last}")


def _build_all(kinds: Sequence[str], report: Report, base: str | None, offline: bool, fresh: bool) -> None:
    docker = _docker_command()
    if offline:
        base = _offline_base(docker, report, fresh)
    with tempfile.TemporaryDirectory(prefix="grader-images-") as scratch:
        # Another base is another key of the cache: everything upon it is then built anew by itself.
        options = [*_secrets(Path(scratch)), *(["--pull"] if fresh and not offline else [])]
        for kind in kinds:
            _build_one(docker, kind, base, options, Path(scratch), report)


def _build_one(
    docker: str, kind: str, base: str | None, options: Sequence[str], scratch: Path, report: Report
) -> None:
    context, name = current_context(kind), image_name(kind)
    folder = scratch / kind
    folder.mkdir()
    context.write(folder)
    arguments = [*context.arguments, *([("BASE_IMAGE", base)] if base else [])]
    command = [docker, "build", "--progress", "plain", "--network", "host", *options]
    for argument, value in arguments:
        command += ["--build-arg", f"{argument}={value}"]
    for proxy in _PROXIES:
        if os.environ.get(proxy):
            # By name alone: such values are kept out of image, history and cache key.
            command += ["--build-arg", proxy]
    for label, value in (
        (KIND_LABEL, kind),
        (TAG_LABEL, context.tag),
        (BASE_LABEL, base or "as in its recipe"),
    ):
        command += ["--label", f"{label}={value}"]
    command += ["--tag", name, str(folder)]
    report(f"{kind}: building {name}")
    steps = set[str]()

    def pass_on(line: str) -> None:
        step = _STEP.match(line)
        if step and step[1] not in steps:
            steps.add(step[1])
            report(f"{kind}: {step[1]} {_brief(step[2])}")

    code, last = _run(command, _BUILD_S, pass_on, DOCKER_BUILDKIT="1")
    if code:
        advice = (
            ""
            if base
            else " Where no image registry can be reached, `make images OFFLINE=1` makes a base of its own."
        )
        raise InfraError(f"The {kind} image was not built.{advice} The last lines of the build:\n{last}")


def _brief(instruction: str) -> str:
    words = [word for word in instruction.split() if not word.startswith("--mount")]
    text = " ".join(word for word in words if word != "\\")
    return text if len(text) <= _STEP_CHARS else text[: _STEP_CHARS - 1] + "…"


def _offline_base(docker: str, report: Report, fresh: bool) -> str:
    name = base_name()
    with (
        contextlib.closing(connect()) as client,
        engine_errors("The container engine did not list its images"),
    ):
        there = any(name in (image.get("RepoTags") or ()) for image in client.api.images())
    if there and not fresh:
        return name
    if shutil.which("mmdebstrap") is None:
        raise InfraError(
            "An offline base is made by mmdebstrap, which is not installed; on Debian: apt install mmdebstrap."
        )
    report(f"base: making {name} from Debian's packages")
    code, last = _run([str(recipe_path(BASE_RECIPE)), name], _BASE_S, lambda _line: None, DOCKER=docker)
    if code:
        raise InfraError(
            f"The offline base was not made (is Debian's mirror reachable?). Its last lines:\n{last}"
        )
    return name


def _docker_command() -> str:
    """A docker command that can build with BuildKit: newer ones need a plug-in that not every package brings."""
    unfit = []
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = shutil.which("docker", path=folder)
        if candidate is None:
            continue
        version = _answer([candidate, "version", "--format", "{{.Client.Version}}"])
        if not version[:2].isdigit():
            continue
        if int(version.split(".")[0]) < 23 or _answer([candidate, "buildx", "version"]):
            return candidate
        unfit.append(f"{candidate} {version} lacks its buildx plug-in")
    raise InfraError(
        f"No docker command here can build images with BuildKit ({'; '.join(unfit) or 'none is installed'}). "
        "Install Docker's buildx plug-in (packages docker-buildx-plugin or docker-buildx)."
    )


def _answer(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _secrets(scratch: Path) -> Iterator[str]:
    config = read_pip_config("/run/secrets/ca")
    file = scratch / "pip.conf"
    file.touch(mode=0o600)
    file.write_text(config.text, encoding="utf-8")
    yield from ("--secret", f"id=pip,src={file}")
    if config.certificates is not None:
        yield from ("--secret", f"id=ca,src={config.certificates}")


def _run(
    command: Sequence[str], limit_s: float, on_line: Callable[[str], object], **variables: str
) -> tuple[int, str]:
    """Run a command; returns its exit code and the last lines of both its outputs."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | variables,
    ) as process:
        watch = threading.Timer(limit_s, process.kill)
        watch.start()
        try:
            for line in process.stdout or ():
                if line.strip():
                    last.append(line.rstrip()[:400])
                on_line(line)
            code = process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            watch.cancel()
    return code, "\n".join(last)
