"""README.md is short, shows its two commands first and names every room of the package; CI runs what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MAX_LINES = 150
MAX_PICTURE_BYTES = 200_000
README = Path(__file__).resolve().parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def named() -> list[str]:
    """Paths that the layout names, in its order."""
    layout = TEXT.split("## Layout", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"^([\w./-]+)\s{2,}\S", layout, flags=re.MULTILINE)
    assert found
    return found


def test_readme_is_short() -> None:
    assert len(TEXT.splitlines()) <= MAX_LINES, "the rest belongs into docs/"


def test_readme_shows_its_two_commands_first() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
    commands = re.findall(r"^((?:make|grader) \S+)", "".join(blocks), flags=re.MULTILINE)
    assert commands == ["make demo", "make test"]
    assert "make test-all" in TEXT


def test_readme_shows_the_flow_a_report_and_a_page(repository: Path) -> None:
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", TEXT)
    assert [Path(path).suffix for _, path in pictures] == [".svg", ".png", ".png"]
    for said, path in pictures:
        assert len(said) > 40, f"{path}: say what it shows to who cannot see it"
        assert (repository / path).stat().st_size < MAX_PICTURE_BYTES


def test_layout_names_real_places_once(named: list[str], repository: Path) -> None:
    missing = [name for name in named if not (repository / name).exists()]
    assert not missing, f"README.md's layout names what does not exist: {missing}"
    assert len(named) == len(set(named))
    assert all((repository / name).is_dir() == name.endswith("/") for name in named)


def test_layout_is_complete(named: list[str], repository: Path) -> None:
    rooms = {
        f"grader/{path.name}/" if path.is_dir() else f"grader/{path.name}"
        for path in (repository / "grader").iterdir()
        if path.name != "__pycache__"
    }
    places = {"containers/", "docs/", "grader/", "skeletons/", "tasks/", "tests/"}
    assert set(named) == rooms | places


def test_readme_links_to_every_page(repository: Path) -> None:
    pages = {f"docs/{path.name}" for path in (repository / "docs").glob("*.md")} - {"docs/README.md"}
    assert pages <= set(re.findall(r"\]\((docs/[\w-]+\.md)\)", TEXT))


def test_ci_runs_what_the_readme_tells_a_reader_to_run(repository: Path) -> None:
    script = repository / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run is not executable"
    text = script.read_text(encoding="utf-8")
    assert text.rstrip().endswith("make test test-all"), (
        "the suite's closing line must be the last thing CI prints"
    )
    assert "GRADER_REQUIRE_ALL=1" in text
