"""Rules and diagnoses of a course's own folder and of installed packages judge like the package's own."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from grader.catalog.rule_codes import known_codes
from grader.catalog.tasks.new_task import new_task
from grader.catalog.tasks.task_folders import find_tasks
from grader.checks.diagnosis import load_explanations
from grader.checks.lint import lint, load_page
from grader.checks.rule import load_rules
from grader.errors import TaskError, UsageError
from grader.model.submission import SourceFile, Submission
from grader.plugins.sources import DIAGNOSES, RULES, foreign_files
from grader.report.html.explanation_pages import rule_pages
from tests.plugins.conftest import CHECKOUT, DIAGNOSIS, RULE, Grader, installed

GREETING = Submission("test", (SourceFile("train.py", "print('here')\n"),))


def codes() -> set[str]:
    return {rule.code for rule in load_rules()}


@pytest.fixture
def course(tasks: Path) -> Path:
    """A course of one quick task, with a rule and a diagnosis of its own."""
    task = tasks / "gradient-descent"
    shutil.copytree(
        CHECKOUT / "tasks" / task.name, task, ignore=shutil.ignore_patterns("submissions", "__pycache__")
    )
    text = (task / "task.toml").read_text()
    assert "apply = [" in text
    (task / "task.toml").write_text(text.replace("apply = [", 'apply = ["HOUSE001", '))
    for folder, name, plugin in (
        ("rules", "house001_debugging_print.py", RULE),
        ("diagnoses", "no_course_file.py", DIAGNOSIS),
    ):
        (tasks / folder).mkdir()
        (tasks / folder / name).write_text(plugin)
    own = CHECKOUT / "tasks" / task.name / "submissions" / "accepted"
    (task / "submissions" / "accepted").mkdir(parents=True)
    (task / "submissions" / "crashed").mkdir()
    shutil.copy(own / "by_hand.py", task / "submissions" / "accepted")
    left_in = f"# expect: HOUSE001\nprint('here')  # <- HOUSE001\n{(own / 'by_hand.py').read_text()}"
    (task / "submissions" / "accepted" / "left_in.py").write_text(left_in)
    (task / "submissions" / "crashed" / "asks_for_a_file.py").write_text(
        "raise RuntimeError('no course file: week 2')\n"
    )
    return tasks


def test_a_rule_of_the_course_is_known_everywhere(course: Path, grader: Grader, tmp_path: Path) -> None:
    assert "HOUSE001" in known_codes() & codes()
    assert load_page("house001") == rule_pages()["HOUSE001"]
    assert [f.code for f in lint(GREETING) if f.code == "HOUSE001"]

    listed = json.loads(grader("rules", "--json").stdout)
    title = "A debugging print was left in the script."
    assert {"code": "HOUSE001", "name": "debugging_print", "severity": "warning", "title": title,
            "source": True, "run": True} in listed  # fmt: skip
    assert "no_course_file" in grader("rules").stdout
    assert "A debugging print was left in the script." in grader("rule", "house001").stdout
    assert "The course's own library raised" in grader("rule", "no_course_file").stdout
    (tmp_path / "train.py").write_text("print('here')\n")
    linted = grader("lint", "train.py", "--select", "HOUSE", "--format", "github")
    assert "HOUSE001" in linted.stdout
    assert "HOUSE001" in grader("lint", "train.py", "--format", "sarif").stdout


@pytest.mark.slow
def test_a_rule_of_the_course_judges_a_run(course: Path, grader: Grader, tmp_path: Path) -> None:
    prepared = grader("data", "prepare", "digits")
    assert prepared.returncode == 0, prepared.stderr
    # The promises hold: the finding is there with its line, in the one script that it was promised for.
    verified = grader("verify", "gradient-descent", "--json")
    cases = {case["submission"]: case for case in json.loads(verified.stdout)["cases"]}
    assert verified.returncode == 0, cases
    assert cases["accepted/left_in.py"]["codes"] == ["HOUSE001"]
    assert cases["accepted/by_hand.py"]["codes"] == []

    left_in = course / "gradient-descent" / "submissions" / "accepted" / "left_in.py"
    graded = grader("grade", "gradient-descent", left_in, "--out", tmp_path / "out", "--json")
    told = json.loads(graded.stdout)
    assert (graded.returncode, told["verdict"]) == (0, "accepted")
    (finding,) = told["findings"]
    assert (finding["code"], finding["severity"], finding["line"]) == ("HOUSE001", "warning", 2)
    assert finding["confirmed"], "the source and the run agree"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "A debugging print was left in the script" in page

    crashed = course / "gradient-descent" / "submissions" / "crashed" / "asks_for_a_file.py"
    told = json.loads(grader("grade", "gradient-descent", crashed, "--json").stdout)
    assert told["verdict"] == "crashed"
    assert told["diagnosis"]["id"] == "no_course_file"


def test_a_rule_that_does_not_fit_costs_no_run(course: Path, grader: Grader, tmp_path: Path) -> None:
    assert grader("data", "prepare", "digits").returncode == 0
    path = course / "rules" / "house001_debugging_print.py"
    path.write_text(RULE.replace("SEVERITY =", "SEVERTY ="))
    (tmp_path / "train.py").write_text("print('here')\n")
    done = grader("grade", "gradient-descent", "train.py", "--out", "out")
    assert done.returncode == 3
    assert "`SEVERTY`: did you mean `SEVERITY`?" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ("        raise ValueError('no idea')\n", "ValueError: no idea ({path}:40)"),
        ("        yield 'hello'\n", "TypeError: it answered 'hello', which is no Hit ({path}:37)"),
        ("        exit(3)\n", "SystemExit: 3 ({path}:40)"),
        (
            "        yield Hit('here', where=None)\n",
            "TypeError: `where` is None, which is no tuple of Location ({path}:40)",
        ),
    ],
)
def test_a_rule_that_fails_is_named_with_its_line(
    instead: str, said: str, course: Path, grader: Grader, tmp_path: Path
) -> None:
    path = course / "rules" / "house001_debugging_print.py"
    path.write_text(RULE.replace("    for call in", f"    for _ in range(1):\n{instead}    for call in"))
    (tmp_path / "train.py").write_text(
        "import torch\ntorch.distributed.all_reduce(torch.ones(1)).wait()\nprint('here')\n"
    )
    (tmp_path / "other.py").write_text("print('there')\n")
    done = grader("lint", "train.py", "other.py")
    assert done.returncode == 3, done.stderr
    assert "other.py" in done.stdout, "one rule that fails loses no other file"
    assert f"rule HOUSE001 failed on the source: {said.format(path=path)}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rule_that_changes_is_read_anew(course: Path) -> None:
    path = course / "rules" / "house001_debugging_print.py"
    before = load_rules()
    assert load_rules() is before, "nothing has changed"
    path.write_text(RULE.replace("A debugging print", "A print"))
    os.utime(path, ns=(1, 1))
    assert next(r.title for r in load_rules() if r.code == "HOUSE001") == "A print was left in the script."
    path.write_text(RULE.replace("SEVERITY =", "SEVERTY ="))
    with pytest.raises(
        TaskError, match=r"house001_debugging_print\.py:\d+: `SEVERTY`: did you mean `SEVERITY`\?"
    ):
        load_rules()
    path.unlink()
    assert "HOUSE001" not in known_codes() | codes()


def test_folders_of_plugins_are_no_tasks(course: Path) -> None:
    (course / "rules" / "task.toml").write_text("")
    assert find_tasks() == ("gradient-descent",)
    with pytest.raises(UsageError, match="'diagnoses' is no name for a task"):
        new_task("diagnoses")


def test_a_task_that_asks_for_a_rule_of_another_course_is_refused(course: Path, grader: Grader) -> None:
    shutil.rmtree(course / "rules")
    done = grader("tasks", "gradient-descent")
    assert done.returncode == 3
    assert "there is no rule 'HOUSE001'" in done.stderr


def test_rules_and_diagnoses_of_an_installed_package(
    tasks: Path, site: Path, grader: Grader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = {
        "acme/__init__.py": "",
        "acme/words.py": "WORD = 'hello'\n",
        "acme/rules/__init__.py": "",
        "acme/rules/house001_debugging_print.py": RULE.replace(
            "import ast\n", "import ast\nimport acme.words\n"
        ),
        "acme_no_course_file.py": DIAGNOSIS,
    }
    installed(
        site,
        "acme",
        files,
        {"grader.rules": "all = acme.rules", "grader.diagnoses": "one = acme_no_course_file"},
    )
    assert "HOUSE001" in grader("rules").stdout
    assert "The course's own library raised" in grader("rule", "acme_no_course_file").stdout
    (tmp_path / "train.py").write_text("print('here')\n")
    assert "HOUSE001" in grader("lint", "train.py", "--format", "github").stdout

    # What judges includes every module that such a rule may import.
    monkeypatch.syspath_prepend(site)
    assert foreign_files(RULES, DIAGNOSES) == tuple(sorted(site / name for name in files))
    assert "HOUSE001" in known_codes() & codes()
    assert "acme_no_course_file" in {one.id for one in load_explanations()}


def test_files_of_the_course_count_as_what_judges(course: Path) -> None:
    assert foreign_files(RULES, DIAGNOSES) == (
        course / "diagnoses" / "no_course_file.py",
        course / "rules" / "house001_debugging_print.py",
    )
