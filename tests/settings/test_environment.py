"""What variables come to: each kind of value, and what is said of one that is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.errors import UsageError
from grader.settings import settings
from grader.settings.schema import Settings


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    settings.cache_clear()
    yield
    settings.cache_clear()


def test_every_kind_of_value_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "TASKS_DIR": "/a",
        "POOL_PAIRS": "3",
        "LEASE_S": "1.5",
        "IMAGE_EXTRAS": "yes",
        "DATASET": "digits",
        "DOCKER_GPUS": "cdi",
        "CA_FILE": "/b.pem",
    }.items():
        monkeypatch.setenv(f"GRADER_{name}", text)
    found = Settings.read()
    assert (found.tasks_dir, found.pool_pairs, found.lease_s, found.image_extras) == (
        Path("/a"),
        3,
        1.5,
        True,
    )
    assert (found.dataset, found.docker_gpus, found.ca_file) == ("digits", "cdi", Path("/b.pem"))
    assert found.profile == "cpu"


def test_what_is_set_to_nothing_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CA_FILE", "POOL_PAIRS", "PROFILE"):
        monkeypatch.setenv(f"GRADER_{name}", "")
    found = Settings.read()
    assert (found.ca_file, found.pool_pairs, found.profile) == (None, Settings().pool_pairs, "")


def test_all_that_is_wrong_is_told_with_what_it_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_POOL_PAIRS", "many")
    monkeypatch.setenv("GRADER_DOCKER_GPUS", "all")
    monkeypatch.setenv("GRADER_TOKEN_FILE", "/nowhere")
    with pytest.raises(UsageError) as refused:
        settings()
    assert "GRADER_POOL_PAIRS=many: must be a whole number" in str(refused.value)
    assert "GRADER_DOCKER_GPUS=all: must be auto or hook or cdi" in str(refused.value)
    assert "GRADER_TOKEN_FILE names a file that cannot be read" in str(refused.value)
