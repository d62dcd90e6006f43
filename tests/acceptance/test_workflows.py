"""The workflow files that courses have: they parse, and every line that calls `grader` works as it stands there.

Each line runs in a repository that `grader new course` made, with a few of its submissions, machine by machine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from grader import __version__, cli
from grader.catalog.courses.new_course import FIRST_TASK, WORKFLOWS
from tests.acceptance.conftest import CHECKOUT

KEPT = (
    "accepted/distributed_sampler.py",
    "rejected/every_rank_saves.patch",
    "rejected/no_set_epoch.patch",
)
NUM_MACHINES = 2


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new course with few and quick submissions, and `grader` on the path of its shell."""
    folder = tmp_path_factory.mktemp("repository") / "course"
    bin_folder = folder.parent / "bin"
    bin_folder.mkdir()
    program = bin_folder / "grader"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m grader "$@"\n')
    program.chmod(0o755)
    succeed(folder.parent, "grader new course course")
    submissions = folder / FIRST_TASK / "submissions"
    for path in submissions.glob("*/*"):
        if path.relative_to(submissions).as_posix() not in KEPT:
            path.unlink()
    shutil.rmtree(submissions / "crashed")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=course")
    return folder


def shell(clone: Path, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a line as CI's shell does."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GRADER_", "CI_"))}
    places = f"{clone / 'bin'}:{clone.parent / 'bin'}:{env['PATH']}"
    # As on the machines of such hosts: no engine that has the grader's images.
    env |= {"DOCKER_HOST": "unix:///nowhere.sock"}
    env |= {"PATH": places, "PYTHONPATH": str(CHECKOUT), "COLUMNS": "120", **variables}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", line],
        cwd=clone,
        env=env,
        text=True,
        capture_output=True,
        timeout=240,
        check=False,
    )


def succeed(clone: Path, line: str, **variables: str) -> None:
    done = shell(clone, line, **variables)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def cases(clone: Path) -> dict[str, bool]:
    """Submission → whether its outcome was known, as the JUnit file of the last line says."""
    root = ElementTree.parse(clone / "build" / "verify.xml").getroot()
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    return {str(c.get("name")): c.find("system-out") is not None for c in root.iter("testcase")}


def options(line: str) -> None:
    """Every option of a line exists."""
    assert callable(cli.build_parser().parse_args(shlex.split(line)[1:]).run)


class GitHub:
    """`github.yml`, with the few expressions that it uses."""

    def __init__(self, clone: Path) -> None:
        self.clone = clone
        self.text = (clone / WORKFLOWS["github"]).read_text(encoding="utf-8")
        self.document: dict[Any, Any] = yaml.safe_load(self.text)
        self.job, self.course = self.document["jobs"]["verify"], self.document["jobs"]["course"]
        self.shards: list[int] = self.job["strategy"]["matrix"]["shard"]

    def lines(self, shard: int, base: str) -> list[tuple[str, dict[str, str]]]:
        """The shell lines of one machine from `grader` on, with their variables."""
        values = {
            "matrix.shard": str(shard),
            "strategy.job-total": str(len(self.shards)),
            "github.event.pull_request.base.sha": base,
            "github.workspace": str(self.clone),
        }

        def filled(text: str) -> str:
            return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda m: values[m[1]], text)

        everywhere = {k: filled(v) for k, v in self.document["env"].items()}
        return [
            (filled(step["run"]), everywhere | {k: filled(v) for k, v in step.get("env", {}).items()})
            for step in self.job["steps"]
            if "run" in step
            and "pip install" not in step["run"]
            and (shard == 1 or "matrix.shard == 1" not in step.get("if", ""))
        ]


def test_github_runs_every_line_and_its_machines_cover_all_submissions_once(clone: Path) -> None:
    github, summary = GitHub(clone), clone / "build" / "summary.md"
    assert github.shards == list(range(1, NUM_MACHINES + 1))
    seen: Counter[str] = Counter()
    for shard in github.shards:
        for line, variables in github.lines(shard, base=""):
            succeed(clone, line, GITHUB_STEP_SUMMARY=str(summary), **variables)
        seen.update(list(cases(clone)))
    assert seen == Counter(KEPT)
    assert summary.read_text().count("## ✔ Tasks: ") == NUM_MACHINES
    assert json.loads((clone / "build" / "lint.sarif").read_text())["version"] == "2.1.0"
    assert list((clone / ".grader" / "evidence").rglob("*.tar.gz")), "what the workflow keeps lies elsewhere"

    # All evidence has come together: only the skeleton is run.
    (line,) = (step["run"] for step in github.course["steps"] if "grader" in step.get("run", ""))
    succeed(clone, line, **github.lines(1, base="")[0][1])
    shown = github.course["steps"][-1]["with"]["path"]
    assert len(list(clone.glob(shown))) == len(KEPT) + 1

    # A second commit: what is known is known, and a merge request looks at what it changed.
    base = git(clone, "rev-parse", "HEAD")
    flawed = clone / FIRST_TASK / "submissions" / "rejected" / "no_set_epoch.patch"
    flawed.write_text(flawed.read_text().replace("Sound but for one line", "All is right but for one line"))
    git(clone, "commit", "--quiet", "--all", "--message=change")
    known: dict[str, bool] = {}
    looked_at: Counter[str] = Counter()
    for shard in github.shards:
        (line, variables) = next(x for x in github.lines(shard, base="") if "verify" in x[0])
        succeed(clone, line, **variables)
        known |= cases(clone)
    for shard in github.shards:
        (line, variables) = next(x for x in github.lines(shard, base) if "verify" in x[0])
        succeed(clone, line, **variables)
        looked_at.update(list(cases(clone)))
    assert known == {name: name != "rejected/no_set_epoch.patch" for name in KEPT}
    assert looked_at == Counter(["rejected/no_set_epoch.patch"])


def test_github_shows_and_keeps_what_the_lines_write(clone: Path) -> None:
    github = GitHub(clone)
    uses = {step["uses"].split("@")[0]: step for step in github.job["steps"] if "uses" in step}
    evidence, handed_on = (
        uses["actions/cache/save"]["with"]["path"],
        github.document["env"]["GRADER_STATE_DIR"],
    )
    assert handed_on.endswith(f"/{evidence.partition('/')[0]}")
    (given,) = (step for step in github.job["steps"] if step.get("name") == "Hand evidence on")
    (taken,) = (step for step in github.course["steps"] if "download-artifact" in step.get("uses", ""))
    # Folders that begin with a dot are left out where nobody asks for them.
    assert (given["with"]["path"], given["with"]["include-hidden-files"]) == (evidence, True)
    assert (taken["with"]["path"], taken["with"]["merge-multiple"]) == (evidence, True)
    lines = "\n".join(line for line, _ in github.lines(1, base=""))
    assert uses["actions/checkout"]["with"]["fetch-depth"] == 0
    assert uses["github/codeql-action/upload-sarif"]["with"]["sarif_file"] in lines
    assert set(uses["actions/upload-artifact"]["with"]["path"].split()) <= set(shlex.split(lines))
    assert uses["actions/cache/restore"]["with"]["path"] == uses["actions/cache/save"]["with"]["path"]
    for name in ("actions/upload-artifact", "actions/cache/save"):
        assert uses[name]["if"] == "always()", "a broken promise must not lose the others"
    # YAML 1.1 reads the key `on` as a truth value.
    assert set(github.document[True]) == {"push", "pull_request"}, "a fork's commits must get no secrets"
    assert github.document["permissions"] == {"contents": "read"}
    for line, _ in github.lines(1, base="abc"):
        if line.startswith("grader"):
            options(line.replace('${BASE:+--changed-since="$BASE"}', "--changed-since abc"))
    assert github.text.count("pip install --requirement requirements.txt") == 2
    assert f"ddp-grader[judge]=={__version__}" in (clone / "requirements.txt").read_text().splitlines()


def test_gitlab_runs_every_line_and_its_machines_cover_all_submissions_once(clone: Path) -> None:
    document = yaml.safe_load((clone / WORKFLOWS["gitlab"]).read_text(encoding="utf-8"))
    verify, lint, course = document["verify"], document["lint"], document["course"]
    assert "--requirement requirements.txt" in "\n".join(document[".installed"]["before_script"])
    project = {"CI_PROJECT_DIR": str(clone)}
    project |= {
        name: text.replace("$CI_PROJECT_DIR", str(clone))
        for name, text in document["variables"].items()
        if name.startswith("GRADER_")
    }
    for line in lint["script"]:
        options(line)
        succeed(clone, line, **project)
    assert (clone / lint["artifacts"]["paths"][0]).is_file()
    count, seen = verify["parallel"], Counter[str]()
    for number in range(1, count + 1):
        node = {"CI_NODE_INDEX": str(number), "CI_NODE_TOTAL": str(count), **project}
        for line in (*verify["script"], *verify["after_script"]):
            succeed(clone, line, **node)
        seen.update(list(cases(clone)))
        assert (clone / verify["artifacts"]["reports"]["junit"]).is_file()
        assert (clone / verify["artifacts"]["paths"][0]).is_file()
    assert seen == Counter(KEPT)
    (line,) = course["script"]
    succeed(clone, line, **project)
    assert len(list(clone.glob(course["artifacts"]["paths"][0]))) == len(KEPT) + 1
    assert set(verify["artifacts"]["paths"]) >= {".grader/evidence"}
    (line,) = verify["script"]
    succeed(
        clone,
        line,
        CI_NODE_INDEX="1",
        CI_NODE_TOTAL="1",
        CI_MERGE_REQUEST_DIFF_BASE_SHA=git(clone, "rev-parse", "HEAD"),
        **project,
    )
    assert cases(clone) == {}
    kept = {path for entry in verify["cache"] for path in entry["paths"]}
    assert ".grader/evidence" in kept
    assert document["variables"]["GIT_DEPTH"] == "0"


@pytest.mark.parametrize("host", ["github", "gitlab"])
def test_the_command_prints_the_file(host: str, clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["workflow", host]) == 0
    text = (clone / WORKFLOWS[host]).read_text(encoding="utf-8")
    assert capsys.readouterr().out == text
    assert f"grader workflow {host}" in text
    assert cli.main(["workflow", host, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == text
    assert not re.search(r"[^\x20-\x7e\n]", text), "not every CI host reads anything but ASCII"
