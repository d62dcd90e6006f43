"""A wheel is whole: built as a release would be, installed into environments of its own, used from an empty folder.

Nothing is downloaded: what a wheel needs beside it is what is installed here, all of it or only what it asks for.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from grader.run.image_context import context_of
from grader.run.images import KINDS
from tests.acceptance.conftest import CHECKOUT

HERE = Path(sysconfig.get_path("purelib"))
TAGS = """
import json, grader.run.images as images
from grader.run.image_context import context_of
print(json.dumps({kind: context_of(kind).tag for kind in images.KINDS}))
"""


class Installed:
    """An environment that has the wheel, and an empty folder to use it from."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder, self.state = folder / "empty", folder / "state"
        self.folder.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        self.python = folder / "venv" / "bin" / "python"
        (self.packages,) = (folder / "venv").glob("lib/python*/site-packages")
        pip("--python", str(self.python), "install", "--no-deps", "--no-index", str(wheel))

    def run(self, *args: object, program: str = "grader") -> subprocess.CompletedProcess[str]:
        own = {k: v for k, v in os.environ.items() if not k.startswith(("GRADER_", "PYTHON"))}
        own |= {"GRADER_STATE_DIR": str(self.state), "GRADER_REFERENCE_TRIES": "1", "COLUMNS": "100"}
        return subprocess.run(
            [self.python.with_name(program), *map(str, args)],
            cwd=self.folder,
            env=own,
            capture_output=True,
            text=True,
            timeout=480,
            check=False,
        )

    def succeed(self, *args: object, program: str = "grader") -> str:
        done = self.run(*args, program=program)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def pip(*args: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *args]
    subprocess.run(command, cwd=CHECKOUT, check=True, timeout=240)


def needed(name: str, seen: set[str]) -> set[str]:
    """Distributions that one needs without its extras, itself included."""
    if (key := name.lower().replace("_", "-")) not in seen:
        seen.add(key)
        for line in map(Requirement, distribution(name).requires or ()):
            if line.marker is None or line.marker.evaluate({"extra": ""}):
                needed(line.name, seen)
    return seen


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # A copy, so that nothing of an earlier build goes in and nothing of this one stays in the checkout.
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in subprocess.check_output(listed, cwd=CHECKOUT, text=True).split("\0"):
        if name and not name.startswith("tests/") and (CHECKOUT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "source" / name).write_bytes((CHECKOUT / name).read_bytes())
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(folder / "source"))
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def whole(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """All that is installed here lies beside the wheel."""
    installed = Installed(tmp_path_factory.mktemp("whole"), wheel)
    (installed.packages / "all.pth").write_text(f"{HERE}\n")
    return installed


@pytest.fixture(scope="module")
def thin(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """What `ddp-grader` without an extra asks for lies beside the wheel, and nothing else."""
    installed = Installed(tmp_path_factory.mktemp("thin"), wheel)
    (metadata,) = installed.packages.glob("ddp_grader-*.dist-info/METADATA")
    asked = re.findall(r"^Requires-Dist: ([^;\n]+)$", metadata.read_text(), flags=re.MULTILINE)
    names: set[str] = set()
    for line in asked:
        needed(Requirement(line).name, names)
    for name in names:
        for top in {
            file.parts[0]
            for file in distribution(name).files or ()
            if file.parts[0] not in ("..", "__pycache__")
        }:
            if not (installed.packages / top).exists():
                (installed.packages / top).symlink_to(HERE / top)
    return installed


def test_the_built_in_course_is_judged_from_an_empty_folder(whole: Installed) -> None:
    steps = json.loads(whole.succeed("demo", "--json"))
    assert [step["verdict"] for step in steps] == ["accepted", "rejected", "deadlocked"]
    assert all((whole.folder / step["report"]).is_file() for step in steps)
    assert whole.succeed("docs", "task-authors").startswith("# For task authors")


def test_images_are_built_of_what_a_checkout_builds_them_of(whole: Installed) -> None:
    tags = json.loads(whole.succeed("-c", TAGS, program="python"))
    assert tags == {kind: context_of(kind).tag for kind in KINDS}


def test_nothing_is_written_beside_the_package(whole: Installed) -> None:
    before = sorted(whole.packages.rglob("*.toml"))
    assert before
    assert "grader new course" in whole.run("new", "task", "mine").stderr
    assert whole.run("new", "course", "mine").returncode == 0
    assert sorted(whole.packages.rglob("*.toml")) == before
    assert (whole.folder / "mine" / "course.toml").is_file()


def test_alone_it_hands_in_and_lints(thin: Installed) -> None:
    for heavy in ("torch", "numpy", "sqlalchemy", "matplotlib", "docker", "jinja2"):
        assert thin.run("-c", f"import {heavy}", program="python").returncode == 1, heavy
    (thin.folder / "train.py").write_text("import torch\n")
    assert "no findings" in thin.succeed("lint", "train.py")
    assert "DIST001" in thin.run("lint", "--task", "ddp-toy", "train.py").stdout + thin.succeed("rules")
    assert "ddp-fashion" in thin.succeed("tasks")
    assert "## Exit codes" in thin.succeed("docs", "commands")
    thin.succeed("new", "course", "mine")
    for command in ("status", "submit ddp-toy train.py", "compare", "report 1"):
        told = thin.run(*command.split())
        assert (told.returncode, "not signed in" in told.stderr) == (2, True), told.stderr


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("grade ddp-toy train.py", "judge"),
        ("verify", "judge"),
        ("demo", "judge"),
        ("data prepare digits", "judge"),
        ("calibrate ddp-toy", "judge"),
        ("images list", "judge"),
        ("serve", "service"),
        ("worker", "service"),
        ("web", "service"),
        ("setup", "service"),
        ("db status", "service"),
    ],
)
def test_a_command_says_which_extra_it_needs(thin: Installed, command: str, extra: str) -> None:
    (thin.folder / "train.py").write_text("import torch\n")
    told = thin.run(*command.split())
    assert told.returncode == 2, told.stdout + told.stderr
    assert f"ddp-grader[{extra}]" in told.stderr
    assert "Traceback" not in told.stderr


def test_the_doctor_says_what_to_install(thin: Installed) -> None:
    told = thin.run("doctor", "--json")
    assert told.returncode == 4
    found = {one["what"]: one for one in json.loads(told.stdout)}
    assert not found["torch"]["ok"]
    assert "ddp-grader[judge]" in found["torch"]["remedy"]
    assert found["Python"]["ok"]
