"""compose.yaml, its example of settings and what docs/ say of both agree, and nobody in it has rights to spare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

SOCKET = "/var/run/docker.sock"


@pytest.fixture(scope="module")
def text(repository: Path) -> str:
    return (repository / "compose.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def services(text: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return found


def test_everything_that_can_be_told_stands_in_the_example(repository: Path, text: str) -> None:
    example = (repository / ".env.example").read_text(encoding="utf-8")
    told = set(re.findall(r"^#?(GRADER_\w+)=", example, flags=re.MULTILINE))
    read = set(re.findall(r"\$\{(GRADER_\w+)", text)) | set(
        re.findall(r"^ +(GRADER_\w+):$", text, re.MULTILINE)
    )
    # Whoever builds images of their own names them all.
    assert told == read - {"GRADER_SERVICE_IMAGE"}


def test_the_example_sets_nothing(repository: Path) -> None:
    example = (repository / ".env.example").read_text(encoding="utf-8")
    assert [line for line in example.splitlines() if line and not line.startswith("#")] == []


def test_nobody_has_rights_to_spare(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        assert not service.get("privileged"), name
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"] is True, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service.get("cap_add", []) == (["DAC_OVERRIDE"] if name == "tools" else []), name
        assert "network_mode" not in service, name


def test_nobody_takes_all_there_is(services: dict[str, dict[str, Any]]) -> None:
    """Neither memory, a folder in memory included, nor processes."""
    for name, service in services.items():
        assert re.fullmatch(r"\d+[mg]|\$\{GRADER_\w+_MEMORY:-\d+g\}", service["mem_limit"]), name
        assert 0 < service["pids_limit"] <= 2048, name
        if "/tmp" in str(service.get("tmpfs")) and name not in {"postgres", "redis"}:
            assert service["tmpfs"][0] == "/tmp:size=512m", name
            assert all(re.search(r"[:,]size=\d+[mg]$", one) for one in service["tmpfs"]), name


def test_only_workers_reach_the_engine_and_only_the_web_is_reached(
    services: dict[str, dict[str, Any]],
) -> None:
    def reaches(service: dict[str, Any]) -> bool:
        return any(str(volume).endswith(f":{SOCKET}") for volume in service.get("volumes", ()))

    assert {name for name, service in services.items() if reaches(service)} == {"worker", "worker-gpu"}
    assert {name for name, service in services.items() if "ports" in service} == {"web"}
    assert {name for name, service in services.items() if "outside" in service["networks"]} == {
        "web",
        "relay",
    }


def test_whatever_runs_on_says_how_it_is(services: dict[str, dict[str, Any]]) -> None:
    lasting = {name for name, service in services.items() if service["restart"] == "unless-stopped"}
    assert lasting == {"web", "worker", "worker-gpu", "relay", "redis", "postgres"}
    assert {name for name in lasting if "healthcheck" not in services[name]} == set()
    # The file that is looked at is the one that the relay is told to touch.
    relay = services["relay"]
    assert relay["command"][-2:] == ["--pulse", "/tmp/pulse"]
    assert repr("/tmp/pulse") in relay["healthcheck"]["test"][-1]


def test_secrets_are_files(repository: Path, services: dict[str, dict[str, Any]]) -> None:
    made = set(
        re.findall(r"^make (\w+)", (repository / "containers" / "secrets.sh").read_text(), re.MULTILINE)
    )
    used = {secret for service in services.values() for secret in service.get("secrets", ())}
    assert used == made
    for service in services.values():
        for name, value in (service.get("environment") or {}).items():
            assert not re.search(r"PASSWORD$|SECRET_KEY$|DATABASE_URL$", name), f"{name}={value} is no file"


def test_what_operators_are_told_names_services_that_exist(
    repository: Path, services: dict[str, dict[str, Any]]
) -> None:
    page = (repository / "docs" / "operators.md").read_text(encoding="utf-8")
    lines = re.findall(r"^docker-compose (.*?)(?:\s+#.*)?$", page, flags=re.MULTILINE)
    assert lines
    for line in lines:
        words = [word for word in line.split() if not word.startswith("-")]
        action, named = words[0], words[1:]
        named = named[:1] if action == "run" else named
        assert action in {"logs", "run", "stop", "up"}, line
        assert set(named) <= set(services), line
