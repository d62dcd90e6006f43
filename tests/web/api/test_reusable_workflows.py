"""The action for GitHub and the component for GitLab: valid where they go, and their lines hand in for real."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from grader import cli
from grader.catalog.courses.new_course import REUSABLE, workflow
from grader.model.grade import Verdict
from grader.store.attempts import attempt_endings
from grader.store.attempts.attempt_endings import StoredFile
from grader.store.queue import claims
from grader.store.tables.api_token import Scope
from tests.web.conftest import School, Served
from tests.web.grades import graded

SCHEMAS = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
SCRIPT = "import torch\n\nprint(torch.__version__)\n"


def documents(kind: str) -> list[Any]:
    return list(yaml.safe_load_all(workflow(kind)))


def validate(document: Any, schema: str) -> None:
    jsonschema.validate(document, json.loads((SCHEMAS / schema).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("github", "github-workflows.json"),
        ("github-action", "github-actions.json"),
        ("gitlab", "gitlab-ci.json"),
        ("gitlab-component", "gitlab-ci.json"),
    ],
)
def test_what_is_printed_is_of_the_hosts_own_form(
    kind: str, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["workflow", kind]) == 0
    printed = list(yaml.load_all(capsys.readouterr().out, Loader=_Plain))
    for document in printed:
        validate(document, schema)
    with pytest.raises(jsonschema.ValidationError):
        validate({**printed[-1], "runs": {"using": 3}, "stages": 3, "jobs": 3}, schema)


class _Plain(yaml.SafeLoader):  # type: ignore[misc]
    """YAML 1.2, as both hosts read it: `on` is a word."""


_Plain.yaml_implicit_resolvers = {
    letter: [one for one in found if one[0] != "tag:yaml.org,2002:bool"]
    for letter, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Plain.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))


def lines_of(kind: str) -> tuple[set[str], list[str], str]:
    """Declared inputs, shell lines, and the whole text."""
    if kind == "github-action":
        (action,) = documents(kind)
        lines = [step["run"] for step in action["runs"]["steps"] if "run" in step]
        return set(action["inputs"]), lines, workflow(kind)
    header, body = documents(kind)
    (job,) = body.values()
    return set(header["spec"]["inputs"]), job["script"], workflow(kind)


@pytest.mark.parametrize("kind", REUSABLE)
def test_every_input_is_used_and_none_reaches_a_shell_as_code(kind: str) -> None:
    inputs, lines, text = lines_of(kind)
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == inputs
    assert not [line for line in lines if re.search(r"\$\[\[|\$\{\{", line)]
    for line in lines:
        for command in re.findall(r"grader (?:submit|verify)[^;\n]*", line):
            words = shlex.split(re.sub(r'\$\{TASK:\+"\$TASK"\}|"\$\w+"', "x", command))
            assert callable(cli.build_parser().parse_args(words[1:]).run)


def judge_next(school: School, verdict: Verdict, over: threading.Event) -> None:
    while not over.wait(0.1):
        claimed = claims.claim(school.store, "w1", ("cpu",))
        if isinstance(claimed, claims.Claimed):
            left = [StoredFile("report.html", school.files.put(b"<p>report</p>"), 13)]
            grade = graded(verdict)
            attempt_endings.finish(school.store, claimed.attempt_id, claimed.lease_token, grade, left)
            return


@pytest.mark.parametrize(
    ("kind", "verdict", "code"),
    [("github-action", Verdict.ACCEPTED, 0), ("gitlab-component", Verdict.REJECTED, 1)],
)
def test_the_lines_hand_in_wait_and_end_as_the_verdict_is(
    served: Served, tmp_path: Path, kind: str, verdict: Verdict, code: int
) -> None:
    program = tmp_path / "bin" / "grader"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m grader "$@"\n')
    program.chmod(0o755)
    (tmp_path / "train.py").write_text(SCRIPT)
    line = next(one for one in lines_of(kind)[1] if "grader submit" in one)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GRADER_")},
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
        "GRADER_URL": served.url,
        "GRADER_TOKEN": served.school.token("anna", Scope.SUBMIT),
        "COMMAND": "submit",
        "TASK": "ddp-toy",
        "SCRIPT": "train.py",
    }
    over = threading.Event()
    worker = threading.Thread(target=judge_next, args=(served.school, verdict, over))
    worker.start()
    try:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", line],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        over.set()
        worker.join(20)
    assert done.returncode == code, done.stdout + done.stderr
    assert (tmp_path / "report.html").read_text() == "<p>report</p>"
