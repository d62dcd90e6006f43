"""Runtimes are found by folder and in installed packages; one that does not follow the protocol is refused in words."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.errors import InfraError, UsageError
from grader.plugins.protocol_faults import protocol_faults
from grader.run.registry import find_runtimes, open_runtime
from grader.run.runtime import Runtime
from grader.run.runtimes.process import ProcessRuntime

FOLLOWS = """
from grader.run.runtime import Availability


class SlurmRuntime:
    name = "slurm"
    isolates = False
    spans_nodes = False
    scorer = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return None

    def self_test(self):
        return Availability(True, "as many nodes as you like")

    def warm(self, like=None):
        pass

    def release(self):
        pass

    def run(self, job, workspace, on_progress):
        raise NotImplementedError
"""


# Modules stay imported: each test has its own.
numbers = itertools.count()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Install a package with one module that offers a runtime; gives the module's path."""

    def install(text: str = FOLLOWS, *, name: str = "slurm", package: str = "slurm-runtime") -> Path:
        module = f"{package.replace('-', '_')}_{next(numbers)}"
        site = tmp_path / module
        information = site / f"{package.replace('-', '_')}-1.2.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        points = f"[console_scripts]\nslurmd = {module}:main\n\n[grader.runtimes]\n{name} = {module}:SlurmRuntime\n"
        (information / "entry_points.txt").write_text(points)
        path = site / f"{module}.py"
        path.write_text(text)
        monkeypatch.syspath_prepend(str(site))
        return path

    return install


def refusal(name: str = "slurm") -> str:
    with pytest.raises(UsageError) as refused:
        open_runtime(name)
    return str(refused.value)


def test_the_graders_own_are_found_by_folder_and_an_unknown_name_lists_them() -> None:
    assert [entry.name for entry in find_runtimes() if not entry.package] == [
        "apptainer",
        "docker",
        "process",
    ]
    with pytest.raises(UsageError, match=r"'nonesuch'.*process"):
        open_runtime("nonesuch")
    assert refusal("proces").endswith("Did you mean `process`?")


def test_the_graders_own_follow_the_protocol_and_are_called_by_their_modules_names() -> None:
    for entry in find_runtimes():
        runtime = entry.load()
        assert protocol_faults(runtime, Runtime) == []
        assert runtime.name == entry.name


def test_a_runtime_of_an_installed_package_is_one_like_any_other(install: Callable[..., Path]) -> None:
    install()
    [entry] = [entry for entry in find_runtimes() if entry.package]
    assert (entry.name, entry.package) == ("slurm", "slurm-runtime 1.2")
    runtime = open_runtime("slurm")
    assert (type(runtime).__name__, runtime.self_test().usable) == ("SlurmRuntime", True)


def test_nothing_of_a_package_is_imported_for_a_runtime_of_ours(install: Callable[..., Path]) -> None:
    install("raise SystemExit('imported')")
    assert isinstance(open_runtime("process"), ProcessRuntime)
    assert "imported" in refusal()


@pytest.mark.parametrize(
    ("right", "wrong", "line", "said"),
    [
        ("def release(self)", "def relase(self)", 23, "`relase`: did you mean `release`?"),
        ("    isolates = False", "    isolated = False", 7, "`isolated`: did you mean `isolates`?"),
        ("    isolates = False\n", "", 5, "`SlurmRuntime` lacks `isolates`, which `Runtime` asks for."),
        (
            "    isolates = False",
            '    isolates = "no"',
            7,
            "`isolates` must be a bool of the class itself, not 'no'.",
        ),
        ("    scorer = None\n", "", 5, "`SlurmRuntime` lacks `scorer`, which `Runtime` asks for."),
        ("self, like=None", "self, like", 20, "`warm` must take `(self, like=…)`, not `(self, like)`."),
        (
            "job, workspace, on_progress",
            "job, workspace, progress",
            26,
            "`(self, job, workspace, progress)`; `progress`: did you mean `on_progress`?",
        ),
        (
            "job, workspace, on_progress",
            "job, workspace",
            26,
            "`run` must take `(self, job, workspace, on_progress)`",
        ),
        ("    def run", "    async def run", 26, "`run` must not be a coroutine."),
        (
            "def __enter__(self)",
            "def __init__(self, queue)",
            11,
            "`SlurmRuntime` must be made without arguments.",
        ),
        ("    def run", "    run = 3\n\n    def ran", 26, "`run` must be a method."),
    ],
)
def test_one_that_does_not_follow_the_protocol_is_refused_with_file_line_and_what_was_meant(
    install: Callable[..., Path], right: str, wrong: str, line: int, said: str
) -> None:
    assert right in FOLLOWS
    path = install(FOLLOWS.replace(right, wrong))
    first, *faults = refusal().splitlines()
    assert first == "The runtime 'slurm' of slurm-runtime 1.2 is refused:"
    assert any(fault.startswith(f"{path}:{line}: `") and said in fault for fault in faults), faults


def test_all_faults_are_told_at_once(install: Callable[..., Path]) -> None:
    install(FOLLOWS.replace("release", "relase").replace("warm", "warn").replace("isolates", "isolate"))
    assert len(refusal().splitlines()) == 4


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("import nonesuch_at_all\n", "{module}:1", "ModuleNotFoundError: No module named 'nonesuch_at_all'"),
        ("x = 1\ndef broken(:\n", "{module}:2", "SyntaxError: "),
        ("x = 1\n\n1 / 0\n", "{module}:3", "ZeroDivisionError: division by zero"),
        (FOLLOWS.replace("SlurmRuntime", "SlurmRuntme"), "{points}:5", "Did you mean `SlurmRuntme`?"),
        ("SlurmRuntime = 3\n", "{points}:5", "`SlurmRuntime` is no class."),
        (FOLLOWS.replace('"slurm"', '"slurmd"'), "{points}:5", "it is called 'slurm' here, and 'slurmd' by"),
    ],
)
def test_one_that_cannot_be_loaded_is_refused_with_the_place_to_mend(
    install: Callable[..., Path], text: str, place: str, said: str
) -> None:
    path = install(text)
    points = path.parent / "slurm_runtime-1.2.dist-info" / "entry_points.txt"
    told = refusal()
    assert place.format(module=path, points=points) in told
    assert said in told


def test_a_package_that_names_a_module_which_is_not_there(install: Callable[..., Path]) -> None:
    path = install()
    path.unlink()
    points = path.parent / "slurm_runtime-1.2.dist-info" / "entry_points.txt"
    assert f"{points}:5: ModuleNotFoundError" in refusal()


def test_a_name_of_ours_is_refused_to_others_and_ours_stays(install: Callable[..., Path]) -> None:
    install(FOLLOWS.replace('"slurm"', '"process"'), name="process")
    assert isinstance(open_runtime("process"), ProcessRuntime)
    [entry] = [entry for entry in find_runtimes() if entry.package]
    with pytest.raises(UsageError, match=r"the grader's own has that name.*entry_points\.txt:5"):
        entry.load()


def test_two_packages_with_one_name_are_told_apart_by_nobody(install: Callable[..., Path]) -> None:
    install()
    install(package="other-runtime")
    assert "other-runtime 1.2 and slurm-runtime 1.2 offer one" in refusal()


def test_one_that_fails_while_it_is_made_is_named_with_its_line(install: Callable[..., Path]) -> None:
    path = install(
        FOLLOWS.replace("def __enter__", "def __init__(self):\n        1 / 0\n\n    def __enter__")
    )
    with pytest.raises(InfraError, match=re.escape(f"{path}:12: ZeroDivisionError")):
        open_runtime("slurm")


@pytest.mark.parametrize(
    ("text", "ok", "found", "remedy"),
    [
        (FOLLOWS, True, "as many nodes as you like", ""),
        (FOLLOWS.replace("release", "relase"), False, "refused", "did you mean `release`?"),
        (FOLLOWS.replace("return Availability", "return Availabilty"), False, "refused", "NameError"),
    ],
)
def test_doctor_shows_what_packages_offer_and_never_a_traceback(
    install: Callable[..., Path], repository: Path, text: str, ok: bool, found: str, remedy: str
) -> None:
    site = install(text).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(repository), str(site)))}
    done = subprocess.run(
        [sys.executable, "-m", "grader", "doctor", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    [shown] = [one for one in json.loads(done.stdout) if "slurm" in one["what"]]
    assert shown["what"] == "runtime slurm (slurm-runtime 1.2)"
    assert (shown["ok"], shown["needed"], shown["found"]) == (ok, False, found)
    assert remedy in shown["remedy"]


def test_an_unknown_or_refused_runtime_is_a_matter_of_usage_on_the_command_line(
    install: Callable[..., Path], repository: Path
) -> None:
    site = install(FOLLOWS.replace("release", "relase")).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(repository), str(site)))}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "grader",
            "grade",
            "ddp-toy",
            "skeletons/ddp-toy/train.py",
            "--runtime",
            "slurm",
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, "did you mean `release`?" in done.stderr) == (2, True), done.stderr


def test_pytest_is_needed_by_the_conformance_suite_alone(repository: Path) -> None:
    code = (
        "import sys, pathlib, importlib; "
        "paths = [one for one in pathlib.Path('grader/run').rglob('*.py') if 'conformance' not in one.parts]; "
        "[importlib.import_module('.'.join(one.with_suffix('').parts)) for one in paths]; "
        "sys.exit('pytest' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=repository, timeout=120).returncode == 0
