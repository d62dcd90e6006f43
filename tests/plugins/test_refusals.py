"""A plug-in that does not fit is refused with file, line and what was meant, and never by a traceback."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from grader import cli
from tests.plugins.conftest import CHECKOUT, DIAGNOSIS, RULE, Grader, installed

RULE_FILE = "house001_debugging_print.py"
DIAGNOSIS_FILE = "no_course_file.py"

# What is written instead of what; the line that the refusal names holds the first word; what it says.
BROKEN_RULES = {
    "a typo in a constant": (
        "EXPLAINED_BY =",
        "EXPLAIND_BY =",
        "EXPLAIND_BY",
        "`EXPLAIND_BY`: did you mean `EXPLAINED_BY`?",
    ),
    "a constant in small letters": (
        "EXPLAINED_BY =",
        "explained_by =",
        "explained_by",
        "`explained_by`: did you mean `EXPLAINED_BY`?",
    ),
    "a constant of its own": (
        "EXPLAINED_BY =",
        "WORDS = ('hello',)\nEXPLAINED_BY =",
        "WORDS",
        "`WORDS`: a rule has no such name, only",
    ),
    "no severity": ("SEVERITY = Severity.WARNING\n", "", '"""A', "write `SEVERITY = Severity.ERROR`"),
    "a severity that is a word": (
        "Severity.WARNING",
        '"warning"',
        'SEVERITY = "warning"',
        "must be a severity such as `Severity.ERROR`",
    ),
    "a severity that is none": (
        "Severity.WARNING",
        "Severity.WARNIN",
        "Severity.WARNIN",
        "did you mean `WARNING`?",
    ),
    "an unknown code": (
        '("DIST001",)',
        '("DIST001",\n    "DIST999")',
        '"DIST999"',
        "there is no rule 'DIST999'; did you mean 'DIST0",
    ),
    "codes that are no tuple": (
        '("DIST001",)',
        '("DIST001")',
        "EXPLAINED_BY",
        'a tuple of codes such as ("DIST001",)',
    ),
    "codes that are no words": ('("DIST001",)', "(1, 2)", "EXPLAINED_BY", "must be a tuple of codes"),
    "an unknown profile": (
        "EXPLAINED_BY =",
        'ON_PROFILE = {\n    "cpu": Severity.HINT,\n    "cuda": Severity.ERROR,\n}\nEXPLAINED_BY =',
        '"cuda"',
        "`ON_PROFILE`: there is no profile 'cuda'",
    ),
    "a profile's severity that is none": (
        "EXPLAINED_BY =",
        'ON_PROFILE = {"cpu": 1}\nEXPLAINED_BY =',
        "ON_PROFILE",
        "must be a severity",
    ),
    "profiles that are no mapping": (
        "EXPLAINED_BY =",
        "ON_PROFILE = Severity.HINT\nEXPLAINED_BY =",
        "ON_PROFILE",
        "must be a mapping",
    ),
    "a flag that is a word": (
        "EXPLAINED_BY =",
        'CLOCKED = "no"\nEXPLAINED_BY =',
        "CLOCKED",
        "must be True or False",
    ),
    "a typo in a function": (
        "def check_source(",
        "def check_sorce(",
        "def check_sorce",
        "`check_sorce`: did you mean `check_source`?",
    ),
    "the function's former name": (
        "def check_run(",
        "def check_trace(",
        "def check_trace",
        "`check_trace`: ",
    ),
    "another parameter": (
        "def check_run(evidence: Evidence)",
        "def check_run(seen: Evidence)",
        "def check_run",
        "write `def check_run(evidence: Evidence) -> Observation`",
    ),
    "one parameter more": (
        "def check_source(script: Script)",
        "def check_source(script: Script, task)",
        "def check_source",
        "`check_source`: write",
    ),
    "a parameter with a default": (
        "def check_source(script: Script)",
        "def check_source(script=None)",
        "def check_source",
        "`check_source`: write",
    ),
    "a parameter of another type": (
        "def check_source(script: Script)",
        "def check_source(script: Evidence)",
        "def check_source",
        "`check_source`: write",
    ),
    "another type returned": ("-> Observation:", "-> bool:", "def check_run", "`check_run`: write"),
    "what is no function": (
        "def check_run(evidence",
        "check_run = None\n\n\ndef _check_run(evidence",
        "check_run = ",
        "`check_run` is no function",
    ),
    "no docstring": (RULE[: RULE.index("from __future__")], "", "from __future__", "has no docstring"),
    "a heading that is misspelled": (
        "## Why it matters",
        "## Why it maters",
        "## Why it maters",
        "`## Why it maters`: write `## Why it matters`",
    ),
    "a section that is missing": (
        "## How it is seen\n",
        "",
        '"""A',
        "the sections of the page of a rule are What it finds · ",
    ),
    "a title of two lines": ("the script.\n", "the script.\nIt is.\n", '"""A', "a title of one line"),
    "no Python": (
        "def check_source(",
        "def check source(",
        "def check source",
        "cannot be imported: SyntaxError",
    ),
    "an import of what is not there": (
        "import Evidence\n",
        "import Evidense\n",
        "import Evidense",
        "cannot be imported: ImportError",
    ),
    "a module that is not there": (
        "import ast\n",
        "import asst\n",
        "import asst",
        "ModuleNotFoundError: No module named 'asst'",
    ),
    "a name that is not there": (
        "EXPLAINED_BY = (",
        "EXPLAINED_BY = tuplle(",
        "tuplle",
        "name 'tuplle' is not defined; did you mean `tuple`?",
    ),
    "an exit": (
        "import ast\n",
        "import ast\nraise SystemExit(0)\n",
        "raise SystemExit",
        "cannot be imported: SystemExit",
    ),
}
BROKEN_DIAGNOSES = {
    "no order": ("ORDER = 5\n", "", '"""The', "`ORDER` is missing; write `ORDER = 20`"),
    "a typo in the order": ("ORDER = 5", "ODER = 5", "ODER", "`ODER`: did you mean `ORDER`?"),
    "a code that nobody has": (
        "ORDER = 5",
        'ORDER = 5\nTOLD_BY = ("DIST09",)',
        "TOLD_BY",
        "did you mean",
    ),
    "an order that is no number": ("ORDER = 5", "ORDER = True", "ORDER", "must be a whole number"),
    "another parameter": (
        "(run: FailedRun)",
        "(case: FailedRun)",
        "def diagnose",
        "write `def diagnose(run: FailedRun) -> Diagnosis | None`",
    ),
    "no function": ("def diagnose(", "def _diagnose(", '"""The', "`diagnose` is missing; write"),
    "another heading": ("## Mend it", "## Use instead", "## Use instead", "write `## Mend it`"),
    "no docstring": (
        DIAGNOSIS[: DIAGNOSIS.index("from __future__")],
        "",
        "from __future__",
        "has no docstring",
    ),
}


def refusal(text: str, path: Path, marked: str) -> str:
    """What was said of the line that holds the marked words."""
    line = next(
        n
        for n, one in enumerate(path.read_text().splitlines(), 1)
        if one.strip().startswith(marked) or marked in one
    )
    found = re.search(rf"^ *{re.escape(str(path))}:{line}: (.*)$", text, flags=re.MULTILINE)
    assert found, f"nothing about {path}:{line} in\n{text}"
    return found[1]


def broken(text: str, instead_of: str, written: str) -> str:
    assert text.count(instead_of) == 1
    return text.replace(instead_of, written)


@pytest.mark.parametrize("case", BROKEN_RULES)
def test_a_rule_that_does_not_fit(case: str, tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instead_of, written, marked, said = BROKEN_RULES[case]
    path = tasks / "rules" / RULE_FILE
    path.parent.mkdir()
    path.write_text(broken(RULE, instead_of, written))
    assert cli.main(["rules"]) == 3
    shown = capsys.readouterr()
    assert said in refusal(shown.err, path, marked)
    assert shown.out == ""


@pytest.mark.parametrize("case", BROKEN_DIAGNOSES)
def test_a_diagnosis_that_does_not_fit(case: str, tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instead_of, written, marked, said = BROKEN_DIAGNOSES[case]
    path = tasks / "diagnoses" / DIAGNOSIS_FILE
    path.parent.mkdir()
    path.write_text(broken(DIAGNOSIS, instead_of, written))
    assert cli.main(["rules"]) == 3
    assert said in refusal(capsys.readouterr().err, path, marked)


def test_all_that_is_wrong_is_said_at_once(tasks: Path, grader: Grader) -> None:
    rules = tasks / "rules"
    rules.mkdir()
    one, two, three = (rules / name for name in ("house001_a.py", "house002_b.py", "house003_c.py"))
    one.write_text(
        RULE.replace("EXPLAINED_BY =", "EXPLAIND_BY =").replace("check_run(evidence:", "check_run(seen:")
    )
    two.write_text(RULE.replace('"DIST001"', '"HOUSE004"'))
    # What cannot be imported is still read for names.
    three.write_text(RULE.replace("import ast", "import asst").replace("SEVERITY =", "SEVERTY ="))
    done = grader("rules")
    assert done.returncode == 3
    assert "have 5 problems" in done.stderr
    assert refusal(done.stderr, one, "EXPLAIND_BY")
    assert refusal(done.stderr, one, "def check_run")
    assert "there is no rule 'HOUSE004'; did you mean 'HOUSE00" in refusal(done.stderr, two, "EXPLAINED_BY")
    assert "No module named 'asst'" in refusal(done.stderr, three, "import asst")
    assert refusal(done.stderr, three, "SEVERTY") == "`SEVERTY`: did you mean `SEVERITY`?"
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "name", ["greeting.py", "House001_greeting.py", "house1_greeting.py", "house001.py", "_house.py"]
)
def test_a_file_that_is_not_called_like_a_rule(
    name: str, tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tasks / "rules" / name
    path.parent.mkdir()
    path.write_text(RULE)
    assert cli.main(["rules"]) == 3
    assert (
        f"{path}: a rule is not called like this; a name that is right is `data002_missing_set_epoch.py`"
        in capsys.readouterr().err
    )


def test_a_folder_of_rules_holds_nothing_else(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("notes.txt", "rules.toml"):
        (tasks / "rules").mkdir(exist_ok=True)
        (tasks / "rules" / name).write_text("")
    (tasks / "rules" / "deeper").mkdir()
    assert cli.main(["rules"]) == 3
    said = capsys.readouterr().err
    assert all(
        f"rules/{name}: a folder of rules holds nothing else" in said
        for name in ("deeper", "notes.txt", "rules.toml")
    )


def test_codes_that_are_taken(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tasks / "rules").mkdir()
    for name in ("data002_twice.py", "house001_again.py", RULE_FILE):
        (tasks / "rules" / name).write_text(RULE)
    assert cli.main(["rules"]) == 3
    said = capsys.readouterr().err
    assert (
        f"{tasks}/rules/data002_twice.py:1: the code DATA002 is taken by {CHECKOUT}/grader/checks/rules/data0"
        in said
    )
    assert (
        f"{tasks}/rules/{RULE_FILE}:1: the code HOUSE001 is taken by {tasks}/rules/house001_again.py" in said
    )


def test_a_name_that_another_diagnosis_has(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tasks / "diagnoses" / "port_in_use.py"
    path.parent.mkdir()
    path.write_text(DIAGNOSIS)
    assert cli.main(["rules"]) == 3
    assert f"{path}:1: the name port_in_use is taken by {CHECKOUT}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [["lint", "train.py"], ["rule", "DATA002"], ["rules", "--json"], ["course", "check", "--read-only"]],
)
def test_every_command_that_needs_rules_says_so(
    command: list[str], tasks: Path, tmp_path: Path, grader: Grader
) -> None:
    path = tasks / "rules" / RULE_FILE
    path.parent.mkdir()
    path.write_text(RULE.replace("EXPLAINED_BY =", "EXPLAIND_BY ="))
    (tmp_path / "train.py").write_text("print('here')\n")
    done = grader(*command)
    assert done.returncode == 3
    assert refusal(done.stderr, path, "EXPLAIND_BY")
    assert "Traceback" not in done.stdout + done.stderr
    if "--json" in command:
        assert json.loads(done.stdout)["error"]["kind"] == "TaskError"


def test_a_broken_rule_of_the_package_is_our_fault(tmp_path: Path, grader: Grader) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(CHECKOUT / "grader", copy / "grader", ignore=shutil.ignore_patterns("__pycache__"))
    path = next((copy / "grader" / "checks" / "rules").glob("data005_*.py"))
    path.write_text(path.read_text().replace("EXPLAINED_BY = ", "EXPLAIND_BY = "))
    done = grader("rules", package=copy)
    assert done.returncode == 4
    assert refusal(done.stderr, path, "EXPLAIND_BY") == "`EXPLAIND_BY`: did you mean `EXPLAINED_BY`?"
    assert "Traceback" not in done.stdout + done.stderr


def test_a_broken_rule_of_an_installed_package(site: Path, grader: Grader) -> None:
    files = {
        "acme/__init__.py": "",
        "acme/rules/__init__.py": "",
        f"acme/rules/{RULE_FILE}": RULE.replace("import ast", "import asst"),
    }
    installed(site, "acme", files, {"grader.rules": "acme = acme.rules"})
    done = grader("rules")
    assert done.returncode == 4
    assert "No module named 'asst'" in refusal(
        done.stderr, site / "acme" / "rules" / RULE_FILE, "import asst"
    )
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("acme.ruless", "there is no module 'acme.ruless'"),
        ("nowhere.rules", "ModuleNotFoundError: No module named 'nowhere'"),
        ("broken.rules", "ZeroDivisionError: division by zero"),
    ],
)
def test_an_entry_point_that_names_nothing(entry: str, said: str, site: Path, grader: Grader) -> None:
    files = {"acme/__init__.py": "", "broken/__init__.py": "1 / 0\n"}
    installed(site, "acme", files, {"console_scripts": "acme = acme:main", "grader.rules": f"acme = {entry}"})
    done = grader("rules")
    assert done.returncode == 4
    text = refusal(done.stderr, site / "acme-1.0.dist-info" / "entry_points.txt", f"acme = {entry}")
    assert said in text
    assert "Traceback" not in done.stdout + done.stderr
