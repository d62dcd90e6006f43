"""SARIF 2.1.0 and GitHub annotations of a lint: in the standard's form, at the right place, stable over edits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from grader.catalog.submissions.scripts import NamedScript, read_scripts
from grader.checks.choice import Choice
from grader.checks.lint import LintedScript, lint_script_as_asked
from grader.checks.rule import load_rules
from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.submission import SourceFile, Submission
from grader.report.annotations import to_annotations
from grader.report.exports.sarif import of_lint
from tests.report.factory import HOSTILE, SOURCE

FIXTURES = Path(__file__).parents[1] / "checks" / "fixtures"
# What the standard's sections 3.13 to 3.52 require of the objects we write, and the types of what they allow.
REQUIRED: dict[str, dict[str, type]] = {
    "document": {"version": str, "runs": list},
    "run": {"tool": dict, "results": list},
    "driver": {"name": str, "rules": list},
    "rule": {"id": str},
    "result": {"message": dict},
    "message": {"text": str},
    "region": {"startLine": int},
}


def has(kind: str, found: dict[str, Any]) -> None:
    for key, type_ in REQUIRED[kind].items():
        assert isinstance(found[key], type_), f"{kind}.{key}"


def check_place(place: dict[str, Any], folder: Path) -> None:
    artifact = place["artifactLocation"]
    if "uriBaseId" in artifact:
        assert re.fullmatch(r"[A-Za-z0-9_.~/%+,;=!$&'()*@-]+", artifact["uri"]), (
            "not a relative URI reference"
        )
        assert not artifact["uri"].startswith(("/", ".."))
        assert (folder / unquote(artifact["uri"])).exists()
    else:
        assert artifact["uri"].startswith("file:///")
    if "region" in place:
        region = place["region"]
        has("region", region)
        assert region["startLine"] >= 1
        assert region["startColumn"] >= 1
        assert (region["endLine"], region["endColumn"]) > (region["startLine"], region["startColumn"])


def check_fix(fix: dict[str, Any], folder: Path) -> None:
    """Sections 3.55 to 3.57: changes of files, each with replacements of regions; an empty region is an insertion."""
    assert set(fix) == {"description", "artifactChanges"}
    has("message", fix["description"])
    assert fix["artifactChanges"]
    for change in fix["artifactChanges"]:
        assert set(change) == {"artifactLocation", "replacements"}
        check_place({"artifactLocation": change["artifactLocation"]}, folder)
        assert change["replacements"]
        for replacement in change["replacements"]:
            assert set(replacement) == {"deletedRegion", "insertedContent"}
            region = replacement["deletedRegion"]
            has("region", region)
            first = (region["startLine"], region["startColumn"])
            assert (1, 1) <= first <= (region["endLine"], region["endColumn"])
            assert set(replacement["insertedContent"]) == {"text"}


def check(document: dict[str, Any], folder: Path) -> None:
    """Hold a document against the standard, as far as we use it."""
    has("document", document)
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    has("run", run)
    driver = run["tool"]["driver"]
    has("driver", driver)
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", driver["semanticVersion"])
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        has("rule", rule)
        for text in ("shortDescription", "fullDescription", "help"):
            has("message", rule[text])
            assert rule[text]["text"].strip()
        assert rule["defaultConfiguration"]["level"] in {"none", "note", "warning", "error"}
    for result in run["results"]:
        has("result", result)
        has("message", result["message"])
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in {"note", "warning", "error"}
        assert result["locations"]
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            check_place(place["physicalLocation"], folder)
        assert all(isinstance(v, str) for v in result["partialFingerprints"].values())
        for fix in result.get("fixes", ()):
            check_fix(fix, folder)
    for invocation in run["invocations"]:
        assert isinstance(invocation["executionSuccessful"], bool)


def linted(*names: str) -> list[LintedScript]:
    found = read_scripts(names, stdin=bytes)
    return [lint_script_as_asked(source, Choice()) for source in found]


def sarif(scripts: list[LintedScript], folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(of_lint(scripts))
    check(document, folder)
    return document


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a flawed script, a submission folder, and files that cannot be read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "my ddp #1.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "mine" / "parts").mkdir(parents=True)
    save = "import torch\n\ndef save(m):\n    torch.save(m.module.state_dict(), 'm.pt')\n"
    (tmp_path / "mine" / "parts" / "saving.py").write_text(save)
    (tmp_path / "mine" / "train.py").write_text(
        SOURCE.replace("import json\n", "import json\nfrom parts.saving import save\n").replace(
            "    if rank == 0:\n        torch.save(", "    save(model)\n    print("
        )
    )
    (tmp_path / "broken.py").write_text("def main(:\n    pass\n")
    (tmp_path / "binary.py").write_bytes(b"\0\1")
    return tmp_path


def test_a_whole_lint_has_the_standards_form(here: Path) -> None:
    document = sarif(linted("src", "mine", "broken.py", "binary.py"), here)
    (run,) = document["runs"]
    uris = {unquote(r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) for r in run["results"]}
    assert {"src/my ddp #1.py", "mine/parts/saving.py", "broken.py"} <= uris
    assert run["invocations"][0]["executionSuccessful"] is False
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "binary" in notification["message"]["text"]
    assert {"SYNTAX", "DATA001"} <= {result["ruleId"] for result in run["results"]}


def test_every_rule_that_lint_may_report_has_its_page_as_help(here: Path) -> None:
    rules = {r["id"]: r for r in sarif([], here)["runs"][0]["tool"]["driver"]["rules"]}
    public = [rule for rule in load_rules() if rule.severity is not Severity.REVIEW]
    assert set(rules) == {"SYNTAX", *(rule.code for rule in public)}
    for rule in public:
        assert rules[rule.code]["help"]["markdown"] == rule.page
        assert rules[rule.code]["shortDescription"]["text"] == rule.title
    assert sarif([], here)["runs"][0]["invocations"] == [{"executionSuccessful": True}]


def test_columns_are_counted_in_utf16_units(here: Path) -> None:
    line = 's = "äß𝄞"; loader = 1\n'
    source = NamedScript("a.py", Submission("a", (SourceFile("a.py", line),)))
    (here / "a.py").write_text(line, encoding="utf-8")
    # As `ast` gives it: bytes of UTF-8, from 1.
    column = len('s = "äß𝄞"; '.encode()) + 1
    place = Location("a.py", 1, column)
    finding = Finding("DATA001", Severity.ERROR, EvidenceKind.SOURCE, "m", "h", (place,))
    document = sarif([LintedScript(source, (finding,))], here)
    region = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]
    before = 's = "äß𝄞"; '.encode("utf-16-le")
    assert region == {
        "startLine": 1,
        "startColumn": len(before) // 2 + 1,
        "endLine": 1,
        "endColumn": len(line.encode("utf-16-le")) // 2,
    }


def applied(text: str, fix: dict[str, Any]) -> str:
    """The text as a viewer changes it that knows the standard and nothing of us."""
    (change,) = fix["artifactChanges"]
    lines = [line.encode("utf-16-le") for line in text.splitlines(keepends=True)]
    starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
    data = b"".join(lines)
    for replacement in sorted(
        change["replacements"],
        key=lambda r: (r["deletedRegion"]["startLine"], r["deletedRegion"]["startColumn"]),
    )[::-1]:
        region = replacement["deletedRegion"]
        first = starts[region["startLine"] - 1] + 2 * (region["startColumn"] - 1)
        last = starts[region["endLine"] - 1] + 2 * (region["endColumn"] - 1)
        data = data[:first] + replacement["insertedContent"]["text"].encode("utf-16-le") + data[last:]
    return data.decode("utf-16-le")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_fix_can_be_made_by_whoever_reads_the_file(here: Path, end: str) -> None:
    text = (FIXTURES / "DATA009" / "flagged_keywords.py").read_text(encoding="utf-8")
    text = text.replace("loader = DataLoader(", 's = "äß𝄞"; loader = DataLoader(').replace("\n", end)
    (here / "one.py").write_bytes(text.encode())
    (result,) = sarif(linted("one.py"), here)["runs"][0]["results"]
    (fix,) = result["fixes"]
    assert applied(text, fix) == text.replace(", shuffle=True", "")
    (here / "two.py").write_bytes((FIXTURES / "DATA001" / "flagged_plain_shuffle.py").read_bytes())
    text = (here / "two.py").read_text(encoding="utf-8").replace("\n", end)
    (here / "two.py").write_bytes(text.encode())
    results = sarif(linted("two.py"), here)["runs"][0]["results"]
    (fix,) = next(r["fixes"] for r in results if r["ruleId"] == "DATA001")
    assert f"{end}    loader.sampler.set_epoch(epoch){end}" in applied(text, fix)
    assert (end == "\r\n") == ("\r" in applied(text, fix))


def test_what_needs_a_decision_has_no_fix(here: Path) -> None:
    (result,) = [r for r in sarif(linted("broken.py"), here)["runs"][0]["results"] if r["ruleId"] == "SYNTAX"]
    assert "fixes" not in result


def fingerprints(folder: Path, text: str) -> dict[str, str]:
    (folder / "f.py").write_text(text)
    results = sarif(linted("f.py"), folder)["runs"][0]["results"]
    return {r["ruleId"]: r["partialFingerprints"]["primaryLocationLineHash"] for r in results}


def test_fingerprints_survive_lines_above_and_other_indentation(here: Path) -> None:
    first = fingerprints(here, SOURCE)
    assert first
    assert fingerprints(here, SOURCE.replace("import json\n", "import json\n\n\n\nimport sys\n")) == first
    moved = SOURCE.replace("    train_loader = DataLoader(", "    train_loader =  DataLoader(")
    assert fingerprints(here, moved)["DATA001"] == first["DATA001"]
    other = SOURCE.replace("train_loader = DataLoader(", "my_loader = DataLoader(").replace(
        "in train_loader", "in my_loader"
    )
    assert fingerprints(here, other)["DATA001"] != first["DATA001"]


def test_the_same_line_twice_has_two_fingerprints(here: Path) -> None:
    source = NamedScript("a.py", Submission("a", (SourceFile("a.py", "f()\nf()\n"),)))
    (here / "a.py").write_text("f()\nf()\n")
    same = [
        Finding("IO001", Severity.ERROR, EvidenceKind.SOURCE, "m", where=(Location("a.py", n, 1),))
        for n in (1, 2)
    ]
    results = sarif([LintedScript(source, tuple(same))], here)["runs"][0]["results"]
    assert len({r["partialFingerprints"]["primaryLocationLineHash"] for r in results}) == 2


def test_files_elsewhere_and_findings_without_a_line_still_have_a_place(
    here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "a.py"
    elsewhere.write_text("x = 1\n")
    source = NamedScript(str(elsewhere), Submission("a", (SourceFile("a.py", "x = 1\n"),)))
    finding = Finding("DIST001", Severity.ERROR, EvidenceKind.SOURCE, "No group anywhere.")
    (result,) = sarif([LintedScript(source, (finding,))], here)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": elsewhere.as_uri()}
    assert place["region"]["startLine"] == 1


def test_annotations_are_one_line_each_at_the_right_file(here: Path) -> None:
    lines = to_annotations(linted("src", "mine", "binary.py")).splitlines()
    assert all(re.match(r"::(error|warning|notice) file=[^,:]+,", line) for line in lines)
    (data,) = [line for line in lines if "title=DATA001" in line and "file=src/" in line]
    number = SOURCE.splitlines().index(next(x for x in SOURCE.splitlines() if "train_loader = " in x)) + 1
    assert data.startswith(f"::error file=src/my ddp #1.py,line={number},endLine={number},col=")
    assert any(line.startswith("::error file=mine/parts/saving.py,line=4,") for line in lines)
    assert any(line.startswith("::error file=binary.py,title=unreadable::") for line in lines)


def test_annotations_cannot_be_broken_out_of() -> None:
    evil = "a,b:c\n::error::x%0A"
    source = NamedScript(evil, Submission("a", (SourceFile("a.py", "x\n"),)))
    finding = Finding(
        "IO001",
        Severity.WARNING,
        EvidenceKind.SOURCE,
        f"{evil}\r\n{HOSTILE}",
        where=(Location("a.py", 1, 1),),
    )
    (line,) = to_annotations([LintedScript(source, (finding,))]).split("\n")[:-1]
    assert line.startswith("::warning file=a%2Cb%3Ac%0A%3A%3Aerror%3A%3Ax%250A,line=1,")
