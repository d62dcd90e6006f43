"""What is in the images: locked versions, our code and no more of it, nothing to write to, no address and no secret."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from grader import cli
from grader.errors import InfraError
from grader.run import image_build, images
from grader.run.devices.torch_build import ASK, TorchBuild
from grader.run.torch_builds import torch_build
from grader.settings import settings

KINDS = ("train", "evaluate", "service")
LEARNER = "20007:20007"
# Brought by Python's own venv, needed to install the rest.
INSTALLERS = {"pip", "setuptools"}
LOCK = {"train": "train.lock", "evaluate": "torch.lock", "service": "service.lock"}

DISTRIBUTIONS = """
import importlib.metadata, json, platform, sys
versions = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
environment = {"python_full_version": platform.python_version(), "sys_platform": sys.platform,
               "python_version": "%d.%d" % sys.version_info[:2], "platform_machine": platform.machine()}
print(json.dumps([versions, environment]))
"""

# Imports inside functions count: they run later, in the same image. Those for type checkers never run.
LACKING = """
import ast, importlib.util, json, pathlib
def imports(node):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield child.module
            yield from (f"{child.module}.{alias.name}" for alias in child.names
                        if pathlib.Path("/opt/grader", *child.module.split("."), "__init__.py").exists()
                        and not hasattr(importlib.import_module(child.module), alias.name))
        yield from imports(child)
files = sorted(pathlib.Path("/opt/grader/grader").rglob("*.py"))
lacking = sorted({f"{path}: {name}" for path in files for name in imports(ast.parse(path.read_text()))
                  if name.split(".")[0] == "grader" and importlib.util.find_spec(name) is None})
print(json.dumps([[str(path.relative_to("/opt/grader")) for path in files], lacking]))
"""

COURSE = """
import os, pwd, subprocess, sysconfig
import matplotlib, numpy, safetensors, sklearn, tensorboard, torch, torchmetrics, torchvision, tqdm
from torch.utils.tensorboard import SummaryWriter
me = pwd.getpwuid(os.getuid())
assert os.path.exists(sysconfig.get_path("include") + "/Python.h")
subprocess.run(["g++", "--version"], check=True, stdout=subprocess.DEVNULL)
print(me.pw_name, me.pw_dir, me.pw_shell)
"""

ANSWERS = """
import inspect, pathlib, re, sysconfig
import sklearn.datasets as found
asks = {"f", "files", "container_path", "image_name"}
for name, load in inspect.getmembers(found, inspect.isfunction):
    if name.startswith("load_") and not inspect.signature(load).parameters.keys() & asks:
        try:
            # One of them lists what pictures there are.
            there = getattr(load(), "images", [name])
        except FileNotFoundError:
            continue
        if len(there):
            print(name)
site = pathlib.Path(sysconfig.get_path("purelib"))
data = re.compile(r"[.](csv|npz|npy|pkl|arff|mat|parquet)([.]gz)?$|ubyte|[.]tfrecord")
for path in site.rglob("*"):
    if data.search(path.name) and "datasets" in path.parts or path.name.startswith("digits.csv"):
        print(path)
X, y = found.make_classification(20, random_state=0)
assert len(y) == 20
"""

WRITABLE = """
import os, stat
def offends(held):
    mode = held.st_mode
    if stat.S_ISLNK(mode):
        return False
    if stat.S_ISDIR(mode):
        # Sticky ones (/tmp and its like) are made to be shared.
        return mode & 0o002 and not mode & stat.S_ISVTX
    return mode & 0o6022
def walk(folder):
    try:
        entries = list(os.scandir(folder))
    except PermissionError:
        # This root has no rights beyond its own files.
        return
    for entry in entries:
        held = entry.stat(follow_symlinks=False)
        if offends(held) or held.st_uid and not entry.path.startswith("/var"):
            print(entry.path, oct(held.st_mode), held.st_uid)
        if stat.S_ISDIR(held.st_mode):
            walk(entry.path)
for top in ("/opt", "/usr", "/etc", "/var", "/run", "/srv"):
    walk(top)
"""


@pytest.fixture(scope="module")
def names(docker_images: dict[str, str]) -> dict[str, str]:
    """All images; a skip where one of the service's is not built."""
    if missing := images.missing(images.KINDS):
        pytest.skip(f"{missing[0]} is not there; `make images` builds it")
    return {kind: images.image_name(kind) for kind in images.KINDS}


def inside(name: str, code: str, *, user: str = "0:0") -> str:
    """What a Python program says in a container without network or rights."""
    hardened = ("--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges")
    done = subprocess.run(
        [
            "docker",
            "run",
            "--rm",
            "--interactive",
            *hardened,
            "--user",
            user,
            "--entrypoint=timeout",
            name,
            *("240", "python", "-"),
        ],
        input=code,
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def locked(repository: Path, lock: str, environment: dict[str, str]) -> dict[str, str]:
    """Versions that a lock file asks for in an environment."""
    text = (repository / "containers" / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split("--hash")[0] for line in text.splitlines() if line.strip() and line[0] != "#"]
    wanted = [Requirement(line) for line in lines]
    return {
        canonicalize_name(one.name): str(one.specifier).removeprefix("==")
        for one in wanted
        if one.marker is None or Marker(str(one.marker)).evaluate(dict(environment))
    }


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_holds_what_its_lock_file_says(repository: Path, names: dict[str, str], kind: str) -> None:
    versions, environment = json.loads(inside(names[kind], DISTRIBUTIONS))
    held = {canonicalize_name(name): version for name, version in versions.items()}
    extras = kind == "train" and settings().image_extras
    wanted = locked(repository, "extras.lock" if extras else LOCK[kind], environment)
    assert {name: version for name, version in held.items() if name not in INSTALLERS - set(wanted)} == wanted


def test_train_and_evaluate_share_the_layer_of_torch(names: dict[str, str]) -> None:
    train, evaluate = images.image_states(("train", "evaluate"))
    shared = evaluate.shared_bytes or 0
    assert shared > 0.95 * (evaluate.size_bytes or 0)
    assert shared > 0.8 * (train.size_bytes or 0) > 0


def test_the_learner_s_image_holds_supervisor_and_probe_and_no_other_room(names: dict[str, str]) -> None:
    files, lacking = json.loads(inside(names["train"], LACKING))
    assert not lacking
    assert {Path(file).parts[1] for file in files} == {"__init__.py", "launch", "probe"}


def test_the_scorer_s_image_holds_what_the_scorer_imports_and_nothing_to_judge_by(
    names: dict[str, str],
) -> None:
    files, lacking = json.loads(inside(names["evaluate"], LACKING))
    assert not lacking
    assert {
        "grader/evaluate/classifier.py",
        "grader/evaluate/scorer/container_server.py",
        "grader/evaluate/scorer/scorer_process.py",
        "grader/evaluate/small_convnet.py",
    } <= set(files)
    rooms = {Path(file).parts[1].removesuffix(".py") for file in files}
    assert not rooms & {
        "attempts",
        "catalog",
        "checks",
        "cli",
        "judgement",
        "pipeline",
        "probe",
        "report",
        "verify",
    }
    assert not {
        "grader/evaluate/points/rubric.py",
        "grader/evaluate/points/score.py",
        "grader/launch/supervisor.py",
    } & set(files)
    assert not json.loads(
        inside(names["evaluate"], "import glob, json; print(json.dumps(glob.glob('/opt/grader/t*')))")
    )


def test_the_service_works_without_torch(names: dict[str, str]) -> None:
    # Elsewhere belong: migrations, which Alembic alone reads; what a task's evaluate.py imports, in the evaluate image;
    # what ranks run to try GPUs; and a suite of tests.
    every = (
        "import importlib, pkgutil, sys, grader\n"
        "for m in pkgutil.walk_packages(grader.__path__, 'grader.'):\n"
        "    elsewhere = ('__main__', 'migrations', 'evaluate.classifier', 'convnet', 'gpu_trials.scripts',\n"
        "        'run.conformance')\n"
        "    any(part in m.name for part in elsewhere) or importlib.import_module(m.name)\n"
        "print(sorted({'torch', 'docker', 'jinja2'} & set(sys.modules)), len(sys.modules))\n"
        "import grader.catalog.tasks.task_folders; print(*grader.catalog.tasks.task_folders.find_tasks())\n"
    )
    said = inside(names["service"], every, user="grader").splitlines()
    assert said[0].startswith("['docker', 'jinja2']")
    assert "ddp-fashion" in said[1].split()


def test_the_service_computes_the_same_names(names: dict[str, str]) -> None:
    ask = "from grader.run.images import KINDS, image_name\nprint(*map(image_name, KINDS))"
    assert inside(names["service"], ask, user="grader").split()[:2] == [names["train"], names["evaluate"]]


@pytest.mark.slow
def test_a_learner_finds_a_home_and_what_course_scripts_import(names: dict[str, str]) -> None:
    assert inside(names["train"], COURSE, user=LEARNER).split() == ["learner7", "/jit", "/usr/sbin/nologin"]


def test_no_package_brings_the_answers_along(names: dict[str, str]) -> None:
    """The hidden split of `digits` is part of what scikit-learn ships; what is generated works as ever."""
    assert inside(names["train"], ANSWERS, user=LEARNER) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_but_root_can_write_and_nothing_changes_its_user(names: dict[str, str], kind: str) -> None:
    assert inside(names[kind], WRITABLE) == ""


@pytest.mark.parametrize("kind", ["train", "evaluate"])
@pytest.mark.parametrize(
    "path", ["/opt/grader/grader/launch/ranks/rank.py", "/opt/grader/x", "/opt/venv/bin/python"]
)
def test_a_learner_can_t_change_our_code(names: dict[str, str], kind: str, path: str) -> None:
    code = f"try:\n    open({path!r}, 'ab')\nexcept OSError as error:\n    print(type(error).__name__)"
    assert inside(names[kind], code, user=LEARNER).strip() in ("PermissionError", "FileNotFoundError")


@pytest.mark.parametrize("kind", KINDS)
def test_neither_history_nor_settings_name_an_index(names: dict[str, str], kind: str) -> None:
    done = subprocess.run(
        ["docker", "image", "inspect", names[kind]], capture_output=True, text=True, timeout=60, check=True
    )
    config = json.loads(done.stdout)[0]["Config"]
    done = subprocess.run(
        ["docker", "history", "--no-trunc", "--format", "{{.CreatedBy}} {{.Comment}}", names[kind]],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    told = done.stdout + json.dumps(config)
    assert "pip install" in told
    assert "://" not in told
    assert not [
        line for line in config["Env"] if line.partition("=")[0].lower().endswith(("proxy", "token", "cert"))
    ]
    left = "import glob; print(*glob.glob('/run/secrets/*'), *glob.glob('/etc/**/pip.conf', recursive=True))"
    assert inside(names[kind], left).strip() == ""
    assert inside(names[kind], "import os, sys; print(os.listdir(sys.prefix))").count("pip.conf") == 0


def test_a_second_build_starts_nothing(names: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    docker = shutil.which("docker")
    assert docker is not None
    # Without a docker command nothing could be built.
    monkeypatch.setenv("PATH", "/nowhere")
    said: list[str] = []
    image_build.build(images.KINDS, said.append, offline=True)
    assert said == []
    for kind in images.KINDS:
        # What compose.yaml names is what was built last.
        told = [images.image_name(kind), images.moving_name(kind)]
        done = subprocess.run(
            [docker, "image", "inspect", "--format", "{{.Id}}", *told],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert len(set(done.stdout.split())) == 1


def test_the_image_for_ranks_says_which_gpus_its_torch_has_kernels_for(
    docker_images: dict[str, str],
) -> None:
    image_build.build(["train"], lambda line: None)
    build = torch_build("docker")
    assert build is not None
    assert build == TorchBuild.parse(inside(docker_images["train"], ASK))


@pytest.fixture
def old_image(docker_images: dict[str, str]) -> Iterator[tuple[str, str]]:
    """An image of a kind that nobody else has, with a tag that is not current: its kind and its name."""
    kind = f"test{os.getpid()}"
    name = f"grader-{kind}:0123456789ab"
    with io.BytesIO() as buffer:
        tarfile.open(fileobj=buffer, mode="w").close()
        empty = buffer.getvalue()
    label = ["--change", f"LABEL {images.KIND_LABEL}={kind}"]
    subprocess.run(
        ["docker", "import", *label, "-", name], input=empty, capture_output=True, check=True, timeout=60
    )
    yield kind, name
    subprocess.run(["docker", "rmi", name], capture_output=True, timeout=60)


def test_old_images_go_unless_a_container_uses_them(old_image: tuple[str, str]) -> None:
    kind, name = old_image
    made = subprocess.run(
        ["docker", "create", name, "none"], capture_output=True, text=True, check=True, timeout=60
    )
    try:
        assert images.remove_old((kind,)) == ((), (name,))
    finally:
        subprocess.run(["docker", "rm", made.stdout.strip()], capture_output=True, check=True, timeout=60)
    assert images.remove_old((kind,)) == ((name,), ())
    assert images.remove_old((kind,)) == ((), ())


def test_list_tells_state_and_size(names: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["images", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    listed: dict[str, dict[str, Any]] = {one["kind"]: one for one in told["images"]}
    assert {kind: one["name"] for kind, one in listed.items()} == names
    assert {one["state"] for one in listed.values()} == {"present"}
    assert all(one["size_bytes"] >= one["shared_bytes"] for one in listed.values())
    assert all(listed[kind]["shared_bytes"] > 0 for kind in images.NEEDED_TO_GRADE)
    sizes = [one["size_bytes"] for one in listed.values()]
    assert max(sizes) < told["on_disk_bytes"] < sum(sizes)
    assert cli.main(["images", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in names.values())


def test_the_doctor_sees_engine_and_images(
    docker_images: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["doctor", "--json"])
    seen = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert seen["container engine"]["ok"]
    assert "seccomp" in seen["container engine"]["found"]
    for kind, name in docker_images.items():
        assert seen[f"image {kind}"]["ok"]
        assert name in seen[f"image {kind}"]["found"]


def test_without_an_engine_every_action_says_where_to_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    for line in (["images", "list"], ["images", "build"], ["images", "remove", "--old"]):
        assert cli.main(line) == 4
        assert "container engine" in capsys.readouterr().err


def test_without_buildkit_it_says_what_to_install(
    docker_images: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InfraError, match="buildx"):
        image_build.build(["evaluate"], lambda line: None, fresh=True)


def test_a_failed_build_shows_its_last_lines_and_the_way_out(docker_images: dict[str, str]) -> None:
    said: list[str] = []
    with pytest.raises(InfraError, match="The evaluate image was not built") as failed:
        image_build.build(["evaluate"], said.append, base="NO/such:base", fresh=True)
    assert "NO/such:base" in str(failed.value)
    assert said == [f"evaluate: building {docker_images['evaluate']}"]


@pytest.mark.parametrize(
    "line",
    [
        ["images", "build", "--only", "trian"],
        ["images", "build", "--offline", "--base", "x"],
        ["images", "remove"],
    ],
)
def test_wrong_use_is_told_apart(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line) == 2
    assert capsys.readouterr().err.startswith("grader: ")
