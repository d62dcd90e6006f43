"""The lock files pin every package to a version and to hashes, and name no place to get it from."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from grader.cli.extras import OF_SERVICE

LOCKS = ("requirements.lock", "requirements-dev.lock")
IMAGE_PARTS = ("torch", "train", "extras", "service")
# Installed for others, who import them only where they are there.
IMPORTED_BY_OTHERS = {"httptools", "psycopg", "python-multipart", "setproctitle", "uvloop"}
IMAGE_LOCKS = tuple(f"containers/{part}.lock" for part in IMAGE_PARTS)


def entries(repository: Path, lock: str) -> list[tuple[Requirement, list[str]]]:
    """Requirement and hashes of each entry."""
    text = (repository / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            requirement, *hashes = re.split(r"\s+--hash=", line.strip())
            found.append((Requirement(requirement), hashes))
    assert len(found) > 20, f"{lock} has only {len(found)} entries"
    return found


def pins(repository: Path, lock: str) -> dict[str, set[str]]:
    """Package name → pinned versions (one per range of Pythons)."""
    found: dict[str, set[str]] = {}
    for requirement, _ in entries(repository, lock):
        found.setdefault(canonicalize_name(requirement.name), set()).add(str(requirement.specifier)[2:])
    return found


@pytest.mark.parametrize("lock", LOCKS + IMAGE_LOCKS)
def test_every_entry_is_pinned_and_hashed(repository: Path, lock: str) -> None:
    for requirement, hashes in entries(repository, lock):
        assert re.fullmatch(r"==[\w.!+]+", str(requirement.specifier)), f"{requirement} is not pinned"
        assert hashes, f"{requirement} has no hash"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in hashes), requirement


@pytest.mark.parametrize("lock", LOCKS + IMAGE_LOCKS)
def test_no_place_is_named(repository: Path, lock: str) -> None:
    text = (repository / lock).read_text(encoding="utf-8")
    named = re.findall(r"^.*(?:://|file:|^\s*-(?!-hash)|@).*$", text, flags=re.MULTILINE)
    assert not named, f"{lock} names an index, a folder or an option:\n" + "\n".join(named)


def test_both_files_agree(repository: Path) -> None:
    runtime, development = (pins(repository, lock) for lock in LOCKS)
    differing = {name: (versions, development.get(name)) for name, versions in runtime.items()}
    differing = {name: pair for name, pair in differing.items() if pair[0] != pair[1]}
    assert not differing, f"`make lock` writes both together; these differ: {differing}"


@pytest.mark.parametrize("lock", IMAGE_LOCKS)
def test_images_hold_what_the_checkout_holds(repository: Path, lock: str) -> None:
    locked = pins(repository, "requirements.lock")
    differing = {
        name: (versions, locked[name])
        for name, versions in pins(repository, lock).items()
        if name in locked and not versions <= locked[name]
    }
    assert not differing, f"`make lock` writes all together; these differ: {differing}"


def test_images_build_upon_each_other(repository: Path) -> None:
    torch, train, extras = (pins(repository, f"containers/{part}.lock").items() for part in IMAGE_PARTS[:3])
    assert torch < train < extras


def project_of(repository: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    return project


def dependencies(project: dict[str, Any], *extras: str) -> set[str]:
    """Requirements of the package itself and of these extras."""
    optional = project["project"]["optional-dependencies"]
    return {*project["project"]["dependencies"], *(line for extra in extras for line in optional[extra])}


def test_service_holds_all_dependencies_but_torch(repository: Path) -> None:
    project = project_of(repository)
    heavy = {"torch", "torchvision"}
    wanted = {
        line for line in dependencies(project, "judge", "service") if Requirement(line).name not in heavy
    }
    assert set(project["dependency-groups"]["image-service"]) == wanted
    assert dependencies(project, "service") == wanted
    assert not heavy & set(pins(repository, "containers/service.lock"))


def test_locked_versions_satisfy_pyproject(repository: Path) -> None:
    project = project_of(repository)
    wanted = {
        "requirements.lock": [
            *dependencies(project, "judge", "service"),
            *project["build-system"]["requires"],
        ],
        "requirements-dev.lock": project["project"]["optional-dependencies"]["dev"],
    }
    for lock, requirements in wanted.items():
        locked = pins(repository, lock)
        for requirement in map(Requirement, requirements):
            versions = locked.get(canonicalize_name(requirement.name))
            assert versions, f"{requirement.name} is missing in {lock}; run `make lock`"
            for version in versions:
                assert requirement.specifier.contains(version, prereleases=True), (
                    f"{requirement}: {lock} has {version}"
                )


def test_every_dependency_is_imported(repository: Path) -> None:
    declared = {
        canonicalize_name(Requirement(line).name)
        for line in dependencies(project_of(repository), "judge", "service")
    }
    modules: set[str] = set()
    for path in (repository / "grader").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add((node.module or "").partition(".")[0])
    providers = packages_distributions()
    imported = {canonicalize_name(name) for module in modules for name in providers.get(module, ())}
    assert declared - imported == IMPORTED_BY_OTHERS, "declared and never imported, or imported after all"


def test_a_missing_package_is_looked_for_in_the_extra_that_brings_it(repository: Path) -> None:
    project = project_of(repository)
    only = dependencies(project, "service") - dependencies(project, "judge")
    names = {canonicalize_name(Requirement(line).name) for line in only} - IMPORTED_BY_OTHERS
    brought = {
        module
        for module, providers in packages_distributions().items()
        if names & {canonicalize_name(provider) for provider in providers}
    }
    assert {module for module in brought if not module.startswith("_")} <= OF_SERVICE
