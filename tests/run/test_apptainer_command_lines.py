"""What the apptainer runtime asks Apptainer for, word by word, and what it needs around it. Starts no container."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from grader.cli import main
from grader.errors import InfraError
from grader.run.apptainer import image_files
from grader.run.apptainer.base_folder import make_base_folder
from grader.run.apptainer.command_lines import (
    ContainerOptions,
    scorer_command,
    seccomp_text,
    train_command,
    trial_command,
)
from grader.run.apptainer.installation import Installation
from grader.run.images import current_context
from grader.run.registry import open_runtime
from grader.settings import settings

START = ContainerOptions(
    program="/usr/bin/apptainer",
    train_image=Path("/images/train.sif"),
    evaluate_image=Path("/images/evaluate.sif"),
    settings=Path("/base"),
    folder=Path("/base/attempt-1"),
    data=Path("/data/shared"),
    visible=Path("/data/visible"),
    hidden=Path("/data/hidden"),
    memory_bytes=1 << 30,
    maps_users=False,
    limits_groups=False,
)
COMMON = (
    "/usr/bin/apptainer exec --containall --cleanenv --no-home --no-eval --no-mount home,tmp,hostfs,bind-paths,sys "
    "--net --network none --uts --hostname {host} --security seccomp:/base/seccomp.json --pwd / "
    "--env OMP_NUM_THREADS=1 --env PYTORCH_NVML_BASED_CUDA_CHECK=1 "
)
HOSTS = "--mount type=bind,source=/base/hosts,destination=/etc/hosts,ro "
TRAIN = (
    COMMON.format(host="job")
    + "--mount type=bind,source=/base/attempt-1/out,destination=/out "
    + "--mount type=bind,source=/base/attempt-1/record,destination=/record "
    + "--mount type=bind,source=/base/attempt-1/work,destination=/work "
    + "--mount type=bind,source=/base/attempt-1/jit,destination=/jit "
    + "--mount type=bind,source=/base/attempt-1/tmp,destination=/tmp "
    + "--mount type=bind,source=/base/attempt-1/data,destination=/data,ro "
    + "{data}"
    + HOSTS
    + "{options}/images/train.sif /opt/venv/bin/python -u -m grader.launch.servers.container_server --hide-clone3"
)
DATA = "--mount type=bind,source=/data/shared,destination=/prepared,ro "
LIMITS = "--memory 1879048192 --memory-swap 1879048192 --pids-limit 512 "


@pytest.mark.parametrize(
    ("changes", "data", "options"),
    [
        ({}, DATA, ""),
        ({"data": None}, "", ""),
        ({"maps_users": True}, DATA, "--fakeroot "),
        ({"limits_groups": True}, DATA, LIMITS),
        ({"maps_users": True, "limits_groups": True}, DATA, "--fakeroot " + LIMITS),
    ],
)
def test_the_ranks_container_is_asked_for_word_by_word(
    changes: dict[str, object], data: str, options: str
) -> None:
    start = replace(START, **changes)  # type: ignore[arg-type]
    assert " ".join(train_command(start)) == TRAIN.format(data=data, options=options)


def test_only_a_gpu_job_sees_devices() -> None:
    # Which ones ranks see, their own environment says.
    assert "--nv" in train_command(replace(START, gpus=("GPU-1", "GPU-2")))
    assert "--nv" not in train_command(START)
    assert "--nv" not in scorer_command(replace(START, gpus=("GPU-1",)))


def test_many_gpus_come_with_room_for_their_processes() -> None:
    limited = replace(START, limits_groups=True)
    for num_gpus, room in ((0, "512"), (1, "512"), (8, "2176")):
        command = train_command(replace(limited, gpus=tuple(f"GPU-{n}" for n in range(num_gpus))))
        assert command[command.index("--pids-limit") + 1] == room


def test_the_scorers_container_reads_and_has_no_rights_of_the_ranks() -> None:
    command = scorer_command(replace(START, maps_users=True, limits_groups=True))
    assert " ".join(command) == (
        COMMON.format(host="scorer")
        + "--mount type=bind,source=/base/attempt-1/out,destination=/out,ro "
        + "--mount type=bind,source=/base/attempt-1/record,destination=/record/0,ro "
        + "--mount type=bind,source=/base/attempt-1/scorer,destination=/tmp "
        + "--mount type=bind,source=/data/visible,destination=/visible,ro "
        + "--mount type=bind,source=/data/hidden,destination=/hidden,ro "
        + HOSTS
        + "/images/evaluate.sif /opt/venv/bin/python -u -m grader.evaluate.scorer.container_server --hide-clone3"
    )


def test_the_hidden_split_never_gets_near_the_ranks() -> None:
    assert not any("hidden" in word for word in train_command(START))


def test_a_trial_of_limits_has_the_ranks_limits_and_none_of_their_folders() -> None:
    command = trial_command(replace(START, maps_users=True))
    assert "--fakeroot --memory 1879048192" in " ".join(command)
    assert [word for word in command if "source=" in word] == [
        "type=bind,source=/base/hosts,destination=/etc/hosts,ro"
    ]
    assert command[-3:] == ["-u", "-c", "pass"]


# -- the filter of system calls ----------------------------------------------------------------------------------------


def test_the_filter_is_the_engines_but_for_the_call_that_the_box_answers_itself() -> None:
    profile = settings().containers_dir.joinpath("seccomp.json").read_text()
    ours, engines = json.loads(seccomp_text(profile)), json.loads(profile)
    assert {key: value for key, value in ours.items() if key != "syscalls"} == {
        key: value for key, value in engines.items() if key != "syscalls"
    }
    different = [
        (one, other) for one, other in zip(ours["syscalls"], engines["syscalls"], strict=True) if one != other
    ]
    assert [(one["names"], one["action"], other["errnoRet"]) for one, other in different] == [
        (["clone3"], "SCMP_ACT_ALLOW", 38)
    ]


def test_a_profile_with_an_error_that_nobody_would_answer_is_refused() -> None:
    rule = {"names": ["openat2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}
    with pytest.raises(ValueError, match="openat2"):
        seccomp_text(json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [rule]}))


def test_clone3_does_not_exist_once_it_is_hidden_and_threads_and_children_still_start() -> None:
    script = """
        import ctypes, errno, os, subprocess, sys, threading
        from grader.launch.ranks.syscalls import hide_clone3
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # no_new_privs
        hide_clone3()
        assert libc.syscall(435, None, 0) == -1
        print(errno.errorcode[ctypes.get_errno()], flush=True)
        thread = threading.Thread(target=lambda: print("thread", flush=True))
        thread.start(), thread.join()
        subprocess.run([sys.executable, "-c", "import ctypes, errno; libc = ctypes.CDLL(None, use_errno=True); "
            "libc.syscall(435, None, 0); print('child', errno.errorcode[ctypes.get_errno()])"])
    """
    lines = [line.removeprefix("        ") for line in script.splitlines()]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split("\n") == ["ENOSYS", "thread", "child ENOSYS", ""], done.stderr


# -- images ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["train", "evaluate"])
def test_an_image_file_is_the_engines_image_of_the_same_tag(kind: str, tmp_path: Path) -> None:
    text = image_files.recipe(kind).read_text()
    header = dict(re.findall(r"^(\w+): (.*)$", text, re.MULTILINE))
    assert header == {"Bootstrap": "localimage", "From": "{{ FOLDER }}"}
    # Beside that: comments, and the recipe and lock files that the engine's image is made of.
    assert f"{kind}.Dockerfile" in text
    assert f"{kind}.Dockerfile" in {path.name for path in settings().containers_dir.iterdir()}
    command = image_files.build_command("apptainer", kind, tmp_path / "unpacked", tmp_path / "half.sif")
    assert command[command.index("--build-arg") + 1] == f"FOLDER={tmp_path / 'unpacked'}"
    assert command[-2:] == [str(tmp_path / "half.sif"), str(image_files.recipe(kind))]
    assert image_files.image_file(kind).name == f"grader-{kind}-{current_context(kind).tag}.sif"


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for image files."""
    folder = tmp_path / "images"
    folder.mkdir()
    own = replace(settings(), apptainer_images=folder)
    monkeypatch.setattr("grader.run.apptainer.image_files.settings", lambda: own)
    return folder


INSTALLATION = Installation("apptainer", "1.4", "nobody", 65534, 65534, changes_user=True, maps_users=False)


def test_image_files_that_are_missing_or_closed_are_named(images: Path) -> None:
    images.joinpath("grader-train-000000000000.sif").touch()
    why = image_files.objection(INSTALLATION)
    names = [image_files.image_file(kind).name for kind in ("train", "evaluate")]
    assert all(name in why for name in (*names, str(images), "grader images build --apptainer"))
    for name in names:
        images.joinpath(name).touch(mode=0o600)
    assert image_files.objection(INSTALLATION) == (
        f"nobody may not read {images / names[0]}: name another folder in GRADER_APPTAINER_IMAGES"
    )


def test_a_temporary_folder_that_is_closed_to_the_account_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(closed))
    with pytest.raises(InfraError, match="set TMPDIR"):
        make_base_folder(INSTALLATION)
    assert list(closed.iterdir()) == []


def test_only_image_files_of_earlier_versions_are_removed(images: Path) -> None:
    current = image_files.image_file("train")
    for name in (current.name, "grader-train-000000000000.sif", "grader-evaluate-1.sif", "mine.sif"):
        images.joinpath(name).touch()
    assert image_files.remove_old() == ("grader-evaluate-1.sif", "grader-train-000000000000.sif")
    assert sorted(path.name for path in images.iterdir()) == sorted((current.name, "mine.sif"))


def test_image_files_can_be_removed_where_there_is_no_engine(
    images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{images}/nobody")
    images.joinpath("grader-train-000000000000.sif").touch()
    assert main(["images", "remove", "--old", "--apptainer"]) == 0
    assert capsys.readouterr().out == "grader-train-000000000000.sif  removed\n"
    assert list(images.iterdir()) == []


# -- where there is no apptainer ---------------------------------------------------------------------------------------


@pytest.fixture
def without_apptainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on whose path there is nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("grader.run.apptainer.installation._SYSTEM_PATH", str(tmp_path))


def test_the_runtime_is_not_offered_and_says_why(without_apptainer: None) -> None:
    test = open_runtime("apptainer").self_test()
    assert not test.usable
    assert test.reason.startswith("apptainer is not installed")


def test_image_files_are_not_begun(without_apptainer: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["images", "build", "--apptainer"]) == 4
    assert "Apptainer is not installed" in capsys.readouterr().err


def test_a_grader_that_is_root_asks_for_an_ordinary_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "apptainer"
    program.write_text("#!/bin/sh\necho 1.4\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    for name, words in (
        ("", "GRADER_APPTAINER_USER"),
        ("root", "must not be root"),
        ("nobody-here", "no user"),
    ):
        monkeypatch.setattr(
            "grader.run.apptainer.installation.settings",
            lambda name=name: replace(settings(), apptainer_user=name),
        )
        test = open_runtime("apptainer").self_test()
        assert not test.usable
        assert words in test.reason
