"""What README.md and docs/ tell a reader to type works, what they point to exists, and their tables are complete."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from grader import cli, errors

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
MAX_WORDS = 40
# What trains, measures, serves, builds images or talks to a service is not run here. Beginning of the line → the test
# that runs such a line for real, or the script that does.
RUN_ELSEWHERE = {
    "celery -A grader.queue": "tests/worker/test_celery.py",
    "curl": "tests/web/api/test_reference.py",
    "docker-compose": "tests/acceptance/test_compose.py",
    "grader calibrate": "tests/acceptance/test_documented.py",
    "grader compare": "tests/client/test_compare.py",
    "grader course check --no-time": "tests/acceptance/test_workflows.py",
    "grader course check workshop --jobs": "tests/acceptance/test_course_check.py",
    "grader course import": "tests/serve/test_course_import.py",
    "grader course rehearse": "tests/rehearsal/test_rehearsal.py",
    "cd my-course": "tests/acceptance/test_new_course.py",
    "grader data prepare my-task": "tests/acceptance/test_own_data.py",
    "grader db": "tests/store/test_site_backup.py",
    "grader doctor --gpu": "tests/run/test_gpu_containers.py",
    "grader export": "tests/autograders/test_gradescope_harness.py",
    "grader grade": "tests/acceptance/test_command_line.py",
    "grader images": "tests/run/test_images.py",
    "grader login": "tests/client/test_commands.py",
    "grader new course": "tests/acceptance/test_new_course.py",
    "grader new task": "tests/acceptance/test_new_task.py",
    "grader pool": "tests/acceptance/test_documented.py",
    "grader recover": "tests/web/access/test_recovery.py",
    "grader regrade": "tests/judging/test_another_version.py",
    "grader report": "tests/client/test_commands.py",
    "grader serve": "tests/serve/test_embedded.py",
    "grader slurm feed": "tests/cluster/slurm_site.py",
    "grader status": "tests/client/test_commands.py",
    "grader tasks ddp-toy --notebook": "tests/acceptance/test_notebooks.py",
    "grader submit": "tests/client/test_commands.py",
    "grader tokens": "tests/worker/test_commands.py",
    "grader worker": "tests/worker/test_commands.py",
    "grader verify": "tests/acceptance/test_verify_in_ci.py",
    "make bench": "tests/acceptance/test_documented.py",
    "make check": ".ci/run",
    "make demo": "tests/acceptance/test_documented.py",
    "make images": ".ci/run",
    "make lock": "tests/house/test_lock.py",
    "make serve": "tests/serve/test_embedded.py",
    "make test": ".ci/run",
    "make texts": "tests/web/account/test_languages.py",
    "make up": "tests/acceptance/test_compose.py",
    "python -m pip install": "tests/acceptance/test_wheel.py",
    "python -m tests.bench": "tests/acceptance/test_documented.py",
    "python -m tests.cases": "tests/acceptance/test_foreign_scripts.py",
    "python -m tests.corpus": "tests/checks/test_corpus.py",
    "python -m tests.libraries": "tests/acceptance/test_documented.py",
    "python -m tests.mending": "tests/mending/test_mending.py",
    "source .venv/bin/activate": ".ci/run",
}


def lines_of(text: str) -> list[str]:
    """Lines of all shell blocks, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = (re.sub(r"\s+#.*$", "", line).strip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line]


def spans_of(text: str) -> list[str]:
    """Code in running text and tables."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def words_of(line: str) -> list[str]:
    """Words of a line without which whoever runs it does not: its command below the program."""
    words = line.split()
    below = {"grader": words[1:2], "celery": words[3:5]}
    return below.get(words[0], [])


def elsewhere(line: str) -> str | None:
    return next((place for start, place in RUN_ELSEWHERE.items() if line.startswith(start)), None)


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """Options of a command and of its subcommands."""
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {option for below in action.choices.values() for option in options_of(below)}
    return found


def commands() -> dict[str, argparse.ArgumentParser]:
    (subparsers,) = (a for a in cli.build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(subparsers.choices)


LINES = sorted({line for text in PAGES.values() for line in lines_of(text)})
GRADER = [line for line in LINES if line.startswith("grader ")]
MAKE = [line for line in LINES if line.startswith("make ")]


@pytest.mark.parametrize("line", LINES)
def test_every_line_is_run_here_or_by_a_test_that_is_named(line: str) -> None:
    place = elsewhere(line)
    assert line in GRADER or place is not None, (
        "nothing runs this: add it to RUN_ELSEWHERE with the test that does"
    )
    if place is not None:
        text = (ROOT / place).read_text(encoding="utf-8")
        assert (ROOT / place).is_file()
        for word in words_of(line):
            assert re.search(rf"(?<![\w-]){word}\b", text), f"{place} does not run `{line}`: no `{word}`"


def test_nothing_is_named_that_no_page_tells() -> None:
    unused = [start for start in RUN_ELSEWHERE if not any(line.startswith(start) for line in LINES)]
    assert unused == []


@pytest.mark.parametrize("line", MAKE)
def test_make_target_exists(line: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", *shlex.split(line)[1:]],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("demo", "grader data prepare digits"),
        ("demo", "grader demo"),
        ("serve", "grader serve"),
        ("bench", "python -m tests.bench"),
    ],
)
def test_make_target_types_what_is_run_elsewhere(target: str, command: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, text=True, capture_output=True, timeout=60, check=True
    )
    assert f"bin/{command}\n" in done.stdout
    place = ROOT / RUN_ELSEWHERE[f"make {target}"]
    assert command.rpartition(" ")[2] in place.read_text(encoding="utf-8")


@pytest.mark.parametrize("line", GRADER)
def test_command_line_is_understood(line: str) -> None:
    assert callable(cli.build_parser().parse_args(shlex.split(line)[1:]).run)


@pytest.mark.parametrize("line", [line for line in GRADER if elsewhere(line) is None])
def test_quick_command_succeeds(line: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grader", *shlex.split(line)[1:]],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == errors.EXIT_ACCEPTED, done.stdout + done.stderr
    assert done.stdout.strip(), f"`{line}` printed nothing"


def test_every_command_has_a_row_in_the_one_table() -> None:
    rows = {
        page: re.findall(r"^\| `grader ([a-z]+)", text, flags=re.MULTILINE) for page, text in PAGES.items()
    }
    assert [page for page, found in rows.items() if found] == ["docs/commands.md"]
    assert set(rows["docs/commands.md"]) == {module.NAME for module in cli.command_modules()}


def test_table_of_exit_codes_is_complete() -> None:
    listed = re.findall(r"^\| (\d) \|", PAGES["docs/commands.md"], flags=re.MULTILINE)
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert [int(code) for code in listed] == sorted(codes)


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_in_the_text_exist(page: str) -> None:
    known = commands()
    everywhere = {option for parser in known.values() for option in options_of(parser)}
    for span in spans_of(PAGES[page]):
        words = span.split()
        named = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)}
        if words[0] == "grader" and len(words) > 1 and words[1] != "--help":
            assert words[1] in known, f"{page}: `{span}`"
            assert named <= options_of(known[words[1]]), f"{page}: `{span}`"
        elif words[0].startswith("--"):
            assert named <= everywhere, f"{page}: `{span}`"
        elif words[0] == "make":
            target = rf"^{words[1]}:" if len(words) > 1 else ""
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(target, makefile, flags=re.MULTILINE), f"{page}: `{span}`"


@pytest.mark.parametrize("page", PAGES)
def test_options_beside_a_command_in_its_row_are_its_own(page: str) -> None:
    known = commands()
    for name, rest in re.findall(r"^\| `grader ([a-z]+)(.*)$", PAGES[page], flags=re.MULTILINE):
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)) <= options_of(known[name]), f"grader {name}"


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    for span in spans_of(PAGES[page]):
        if re.fullmatch(r"(?:grader|tests|tasks|docs|containers|skeletons|\.ci)/[\w./-]*", span):
            assert (ROOT / span).exists(), f"{page} names `{span}`"


def anchors_of(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_resolve(page: str) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", PAGES[page]) + re.findall(r'(?:src|href)="([^"]+)"', PAGES[page])
    for target in targets:
        path, _, anchor = target.partition("#")
        assert "://" not in path, f"{page} points to {target}: nothing checks addresses of other places"
        file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert file.is_relative_to(ROOT), f"{page} points to {target}, which is not ours"
        assert file.exists(), f"{page} points to {target}, which does not exist"
        if anchor:
            assert anchor in anchors_of(file.read_text(encoding="utf-8")), (
                f"{page} points to {target}: no heading"
            )


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", PAGES["docs/README.md"]))
    assert {f"docs/{name}" for name in linked} == set(PAGES) - {"README.md", "docs/README.md"}


def test_glossary_is_short_and_sorted() -> None:
    words = re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", PAGES["docs/words.md"], flags=re.MULTILINE)
    assert 0 < len(words) <= MAX_WORDS
    assert [word for word, _ in words] == sorted({word for word, _ in words})


def test_recipes_tell_the_number_of_fixtures_that_tests_demand() -> None:
    demanded = (ROOT / "tests" / "checks" / "test_rules.py").read_text(encoding="utf-8")
    for kind in ("flagged", "clean"):
        (number,) = re.findall(rf'glob\("{kind}_\*\.py"\)\)\) >= (\d+)', demanded)
        assert f"at least {number} `{kind}_*.py`" in PAGES["docs/developing.md"]
