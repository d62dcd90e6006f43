"""What README.md tells a reader to type works, what it points to exists, and its tables are complete."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from grader import cli, errors

# These launch training, measure or serve for minutes, talk to a service, or write into the checkout: the acceptance
# tests and `make demo` run them for real.
LONG_RUNNING = {
    "bench",
    "calibrate",
    "course",
    "db",
    "demo",
    "grade",
    "login",
    "new",
    "regrade",
    "report",
    "serve",
}
LONG_RUNNING |= {"status", "submit", "verify"}
README = Path(__file__).resolve().parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
FENCED = re.findall(r"^```(?:sh|bash|console)?\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
LINES = [
    re.sub(r"\s+#.*$", "", line).strip()
    for block in FENCED
    for line in block.splitlines()
    if re.match(r"(make|grader|\.venv/bin/grader)\b", line)
]
MAKE = sorted({line for line in LINES if line.startswith("make")})
GRADER = sorted({line.removeprefix(".venv/bin/") for line in LINES if "grader" in line.split()[0]})


def test_readme_shows_its_two_commands_first() -> None:
    assert LINES[:2] == ["make demo", "make test"]


@pytest.mark.parametrize("line", MAKE)
def test_make_target_exists(line: str, repository: Path) -> None:
    done = subprocess.run(
        ["make", "--dry-run", *shlex.split(line)[1:]],
        cwd=repository,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", GRADER)
def test_command_line_is_understood(line: str) -> None:
    args = cli.build_parser().parse_args(shlex.split(line)[1:])
    assert callable(args.run)


@pytest.mark.parametrize("line", [line for line in GRADER if line.split()[1] not in LONG_RUNNING])
def test_quick_command_succeeds(line: str, repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grader", *shlex.split(line)[1:]],
        cwd=repository,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == errors.EXIT_ACCEPTED, done.stdout + done.stderr
    assert done.stdout.strip(), f"`{line}` printed nothing"


def test_table_of_commands_is_complete() -> None:
    listed = set(re.findall(r"^\| `grader ([a-z]+)", TEXT, flags=re.MULTILINE))
    assert listed == {module.NAME for module in cli.command_modules()}


def test_table_of_exit_codes_is_complete() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d) \|", TEXT, flags=re.MULTILINE)}
    assert listed == {value for name, value in vars(errors).items() if name.startswith("EXIT_")}


def test_links_and_pictures_resolve(repository: Path) -> None:
    headings = re.findall(r"^#+ (.*)$", TEXT, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    targets = re.findall(r"\]\(([^)\s]+)\)", TEXT) + re.findall(r'(?:src|href)="([^"]+)"', TEXT)
    assert targets
    for target in targets:
        path, _, anchor = target.partition("#")
        assert (repository / path).exists(), f"README.md points to {target}, which does not exist"
        assert path or anchor in anchors, f"README.md points to #{anchor}, but has no such heading"


def test_layout_names_real_folders(repository: Path) -> None:
    layout = TEXT.split("## Layout", 1)[1].split("\n## ", 1)[0]
    named = re.findall(r"^([\w./-]+)\s{2,}", layout, flags=re.MULTILINE)
    assert named
    missing = [name for name in named if not (repository / name).exists()]
    assert not missing, f"README.md's layout names what does not exist: {missing}"


def test_ci_runs_what_the_readme_tells_a_reader_to_run(repository: Path) -> None:
    script = repository / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run is not executable"
    text = script.read_text(encoding="utf-8")
    assert text.rstrip().endswith("make test"), "the suite's closing line must be the last thing CI prints"
    assert "GRADER_REQUIRE_ALL=1" in text
