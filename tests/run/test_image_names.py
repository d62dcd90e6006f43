"""A tag names exactly what is in its image: it changes with any of that, and with nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

Names = dict[str, str]
_ASK = """
import json
from grader.run.images import KINDS, image_name
print(json.dumps({kind: image_name(kind) for kind in KINDS}))
"""


def names_in(checkout: Path, **variables: str) -> Names:
    """Names of all images, as a checkout computes them."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)} | variables,
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    names: Names = json.loads(done.stdout)
    return names


@pytest.fixture(scope="module")
def checkout(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what images are made of, to change things in."""
    root = tmp_path_factory.mktemp("checkout")
    for name in ("grader", "tasks", "skeletons", "containers"):
        shutil.copytree(repository / name, root / name)
    return root


@pytest.fixture(scope="module")
def before(checkout: Path) -> Names:
    return names_in(checkout)


def test_names_say_kind_and_tag(before: Names) -> None:
    assert {
        kind for kind, name in before.items() if re.fullmatch(rf"grader-{kind}:[0-9a-f]{{12}}", name)
    } == {
        "train",
        "evaluate",
        "service",
        "redis",
        "postgres",
    }


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("grader/launch/ranks/rank.py", {"train", "service"}),
        ("grader/probe/new.py", {"train", "service"}),
        ("grader/evaluate/scorer/run_scoring.py", {"evaluate", "service"}),
        ("grader/evaluate/points/rubric.py", {"service"}),
        ("grader/checks/choice.py", {"service"}),
        ("tasks/ddp-fashion/statement.md", {"service"}),
        ("containers/torch.lock", {"train", "evaluate", "service"}),
        ("containers/train.lock", {"train", "service"}),
        ("containers/redis.Dockerfile", {"redis", "service"}),
        ("containers/postgres-entrypoint.sh", {"postgres", "service"}),
        ("containers/evaluate.Dockerfile", {"evaluate", "service"}),
        ("containers/base.sh", {"train", "evaluate", "service", "redis", "postgres"}),
        ("grader/launch/__pycache__/rank.cpython-311.pyc", set()),
        ("README.md", set()),
        ("tests/test_new.py", set()),
    ],
)
def test_a_tag_follows_what_goes_in(checkout: Path, before: Names, path: str, changed: set[str]) -> None:
    file = checkout / path
    original = file.read_bytes() if file.exists() else None
    file.parent.mkdir(exist_ok=True)
    file.write_bytes((original or b"") + b"\n# changed\n")
    try:
        after = names_in(checkout)
    finally:
        file.unlink() if original is None else file.write_bytes(original)
    assert {kind for kind in before if after[kind] != before[kind]} == changed
    assert names_in(checkout) == before


def test_extras_are_another_train_image(checkout: Path, before: Names) -> None:
    after = names_in(checkout, GRADER_IMAGE_EXTRAS="1")
    assert {kind for kind in before if after[kind] != before[kind]} == {"train"}


def test_a_package_without_recipes_says_what_to_do(checkout: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grader", "images", "list"],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout), "GRADER_CONTAINERS_DIR": str(tmp_path)},
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 4
    assert "Unset GRADER_CONTAINERS_DIR" in done.stderr
    assert "Traceback" not in done.stderr
