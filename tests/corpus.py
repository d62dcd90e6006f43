"""How right the source halves are: precision and recall over the fixture corpus, printed as a table.

    python -m tests.corpus [--json]

Three parts, and what counts in each:

* the rules' own folders: every line marked `# <- CODE` in `flagged_*.py` must be found by that rule and no other line
  may be; `clean_*.py` must stay silent. Each file is held against the rule of its folder.
* `styles/`: honest scripts, held against all rules; only marked advice may appear.
* the text of every task's submissions, held against the rules that the task asks for: what the text alone says at
  warning or error level must be among the codes that the submission promises, or one that those explain. What only a
  run can show is not counted as missed here.

Exit code 1 unless both numbers are 1.0.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.checks.lint import lint
from grader.checks.policy import applicable
from grader.checks.rule import Rule, load_rules
from grader.checks.source.script import parse
from grader.model.finding import Severity
from grader.model.submission import SourceFile, Submission

FIXTURES = Path(__file__).parent / "checks" / "fixtures"


@dataclass
class Tally:
    """Counts of one code: marked lines found, lines flagged without a mark, marked lines missed, files read."""

    found: int = 0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    files: int = 0

    def add(self, other: Tally) -> None:
        """Count another's in."""
        self.found += other.found
        self.wrong += other.wrong
        self.missed += other.missed
        self.files += other.files

    @property
    def precision(self) -> float:
        """Share of flagged lines that are marked; 1 where nothing was flagged."""
        return self.found / (self.found + len(self.wrong)) if self.found or self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Share of marked lines that were flagged; 1 where nothing is marked."""
        return self.found / (self.found + len(self.missed)) if self.found or self.missed else 1.0


def marks(text: str) -> set[tuple[str, int]]:
    """(code, line) of every mark in a text."""
    return {
        (code, number)
        for number, line in enumerate(text.splitlines(), 1)
        if "# <-" in line
        for code in re.findall(r"\b[A-Z]+\d{3}\b", line.partition("# <-")[2])
    }


def compare(tally: Tally, name: str, found: set[tuple[str, int]], marked: set[tuple[str, int]]) -> None:
    """Count one file: what was found of what is marked."""
    tally.files += 1
    tally.found += len(found & marked)
    tally.wrong += [f"{name}:{line} {code}" for code, line in sorted(found - marked)]
    tally.missed += [f"{name}:{line} {code}" for code, line in sorted(marked - found)]


def _hits(rule: Rule, text: str) -> set[tuple[str, int]]:
    assert rule.check_source is not None
    script = parse(Submission("corpus", (SourceFile("train.py", text),)))
    return {(rule.code, place.line) for hit in rule.check_source(script) for place in hit.where}


def rule_folders() -> Iterator[tuple[str, Tally]]:
    """One tally per rule with a source half."""
    for rule in load_rules():
        if rule.check_source is None:
            continue
        tally = Tally()
        for path in sorted((FIXTURES / rule.code).glob("*.py")):
            text = path.read_text(encoding="utf-8")
            marked = {(c, n) for c, n in marks(text) if c == rule.code}
            compare(tally, f"{rule.code}/{path.name}", _hits(rule, text), marked)
        yield rule.code, tally


def styles() -> Tally:
    """Honest styles against all rules."""
    tally = Tally()
    for path in sorted((FIXTURES / "styles").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        found: set[tuple[str, int]] = set()
        for rule in load_rules():
            if rule.check_source is not None:
                found |= _hits(rule, text)
        compare(tally, f"styles/{path.name}", found, marks(text))
    return tally


def submissions() -> Tally:
    """The text of all tasks' submissions against the tasks' rules, findings of warning level and above."""
    tally = Tally()
    explained_by = {rule.code: set(rule.explained_by) for rule in load_rules()}
    for name in find_tasks():
        task = load_task(name)
        asked = {rule.code for rule in applicable(task)}
        for promised in submissions_of(task):
            tally.files += 1
            for finding in lint(promised.submission):
                if finding.severity not in (Severity.ERROR, Severity.WARNING) or finding.code not in asked:
                    continue
                if {finding.code, *explained_by[finding.code]} & set(promised.codes):
                    tally.found += 1
                else:
                    line = finding.location.line if finding.location else 0
                    tally.wrong.append(f"{name}/{promised.name}:{line} {finding.code}")
    return tally


def main() -> int:
    """Measure, print, and say by the exit code whether all is right."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    args = parser.parse_args()
    rows = [*rule_folders(), ("styles", styles()), ("submissions", submissions())]
    total = Tally()
    for _, tally in rows:
        total.add(tally)
    rows.append(("all", total))
    if args.json:
        print(
            json.dumps(
                {
                    name: {
                        "files": t.files,
                        "found": t.found,
                        "wrong": t.wrong,
                        "missed": t.missed,
                        "precision": t.precision,
                        "recall": t.recall,
                    }
                    for name, t in rows
                },
                indent=2,
            )
        )
    else:
        print(f"{'':12} {'files':>5} {'found':>5} {'wrong':>5} {'missed':>6}  precision  recall")
        for name, t in rows:
            counts = f"{t.files:5} {t.found:5} {len(t.wrong):5} {len(t.missed):6}"
            print(f"{name:12} {counts}  {t.precision:9.3f}  {t.recall:6.3f}")
        for line in (*(f"wrong   {w}" for w in total.wrong), *(f"missed  {m}" for m in total.missed)):
            print(line)
    return 0 if total.precision == total.recall == 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
