"""How right the judge is about scripts that are not ours: a folder of them, run and held against its manifest.

    python -m tests.cases FOLDER [--out FOLDER] [--replay] [--cold] [--jobs N] [--only PATTERN] [--json FILE]
                                 [--everywhere] [--runtime NAME]

FOLDER holds `manifest.jsonl`, a line for each script, in one of three forms:

* right scripts: `{"case": "TASK/NAME.py", "task": …}`; each should be accepted, with no error and no warning;
* flawed ones: `{"case": "NAME", "task": …, "codes": […], "neighbours": […], "lines": ["train.py:73"], …}`. `codes` name
  the mistake (any does where none is given), `neighbours` are codes that also fit, `lines` are where it was made.
  Something should be said of it, and one of the places named should be within three lines of one of these.
* hostile ones: `{"case": …, "task": …, "goal": …, "verdict": …, "gained": …}`; none should be accepted but those that
  do the work beside their mischief (accepted once, and nothing gained), and none end as the judge's own error. Only
  with `--runtime docker`, one at a time: some fill memory, processes and disks as far as they are let.

`--out` keeps the evidence; `--replay` judges what lies there again and runs nothing; `--cold` starts ranks with the
torchrun command. Two results of one folder are compared by `--against FILE`, an earlier `--json`: verdicts and codes.
`--everywhere` takes all of them through the service's database, and asks each place that tells of an attempt for the
same number: pages, lists, exports, programming interface, command line, certificate.

One line for each script with what keeps it from being as it should, then the sums. Exit code 1 where there is any.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import load_task
from grader.errors import GraderError
from grader.judging.attempt import Attempt
from grader.judging.judge import judge
from grader.judging.stored_evidence import read_evidence
from grader.model.finding import Finding, Severity
from grader.model.grade import Grade, Verdict
from grader.model.run_options import Options
from grader.pipeline import OnProgress, Pipeline
from grader.promises.parallel_pipelines import side_by_side
from grader.report.html.attempt_page import to_html
from grader.run.runtime import Progress
from grader.run.workspace import Workspace
from tests.web.told_outcomes import Left, left_by
from tests.web.whole_class import hold_for_class

NEAR = 3
"""Lines by which a named place may be off."""
DEFAULT_TASK = "ddp-fashion"
"""Of scripts whose manifest names none, since any would do."""


@dataclass(frozen=True, slots=True)
class Case:
    """One script and what should be said of it; `flaw` is None of a right one and of a hostile one.

    `harmless`: a hostile one that does all of the work.
    """

    name: str
    task: str
    path: Path
    flaw: Flaw | None
    hostile: bool = False
    harmless: bool = False


@dataclass(frozen=True, slots=True)
class Flaw:
    """A mistake: codes that name it or fit beside, and where it was made."""

    codes: frozenset[str]
    lines: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was said of one script. `faults`: what should have been otherwise, a word for each."""

    name: str
    verdict: str
    points: float
    codes: tuple[str, ...]
    faults: tuple[str, ...]


def read_cases(folder: Path) -> Iterator[Case]:
    """All scripts that the manifest names."""
    for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        path = folder / told["case"]
        if not path.exists():
            path = path.with_name(f"{path.name}.py")
        flaw = None
        if "codes" in told:
            places = (place.rpartition(":") for place in told["lines"])
            lines = tuple((file, int(number)) for file, _, number in places)
            flaw = Flaw(frozenset(told["codes"]) | frozenset(told["neighbours"]), lines)
        harmless = told.get("verdict") == "accepted" and not told.get("gained")
        name, task = re.sub(r"\.py$", "", told["case"]), told["task"] or DEFAULT_TASK
        yield Case(name, task, path, flaw, "goal" in told, harmless)


def faults_of(case: Case, grade: Grade) -> Iterator[str]:
    """What should have been otherwise."""
    said = [finding for finding in grade.findings if not finding.refuted]
    loud = [finding for finding in said if finding.severity in (Severity.ERROR, Severity.WARNING)]
    if case.hostile:
        if grade.verdict is Verdict.ACCEPTED and not case.harmless:
            yield "gained"
        return
    if case.flaw is None:
        if grade.verdict is not Verdict.ACCEPTED:
            yield grade.verdict.value
        yield from (f"false {finding.code}" for finding in loud)
        return
    if not said and grade.diagnosis is None:
        yield "missed"
    elif case.flaw.codes and not any(case.flaw.codes & f.codes for f in said) and grade.diagnosis is None:
        yield "other code"
    if case.flaw.lines and not any(_near(case.flaw, place) for place in _places(said, grade)):
        yield "other line"


def _places(findings: Sequence[Finding], grade: Grade) -> Iterator[tuple[str, int]]:
    diagnosed = () if grade.diagnosis is None else grade.diagnosis.where
    for location in (*(place for finding in findings for place in finding.where), *diagnosed):
        yield location.path, location.line


def _near(flaw: Flaw, place: tuple[str, int]) -> bool:
    return any(path == place[0] and abs(line - place[1]) <= NEAR for path, line in flaw.lines)


def outcome_of(case: Case, grade: Grade) -> Outcome:
    """The outcome of one script from its grade."""
    places = [
        f"{f.code}{'?' if f.severity is Severity.HINT else ''}" for f in grade.findings if not f.refuted
    ]
    diagnosis = [] if grade.diagnosis is None else [grade.diagnosis.id]
    codes = tuple(dict.fromkeys([*diagnosis, *places]))
    return Outcome(case.name, grade.verdict.value, grade.points, codes, tuple(faults_of(case, grade)))


def differences(now: Sequence[Outcome], before: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Scripts of which another verdict or other codes are told than the earlier time."""
    earlier = {told["name"]: told for told in before}
    for one in now:
        told = earlier.get(one.name)
        if told is None:
            continue
        was = (told["verdict"], tuple(told["codes"]))
        if was != (one.verdict, one.codes):
            yield f"{one.name}: {was[0]} {' '.join(was[1])} -> {one.verdict} {' '.join(one.codes)}"


def main() -> int:
    """Judge all, print what came of it, and say by the exit code whether all is as it should be."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cases", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, help="folder for the evidence of all runs")
    parser.add_argument("--replay", action="store_true", help="judge what --out holds again, run nothing")
    parser.add_argument("--cold", action="store_true", help="start ranks with the torchrun command")
    parser.add_argument("--runtime", default="process", help="where scripts run (default: process)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="a pattern that names of scripts must match")
    parser.add_argument("--json", type=Path, help="file for all outcomes")
    parser.add_argument("--against", type=Path, help="outcomes of an earlier time to compare with")
    parser.add_argument(
        "--everywhere", action="store_true", help="ask every place of the service for the points"
    )
    args = parser.parse_args()
    options = Options(timed=False, launcher="torchrun" if args.cold else None)

    def folder(case: Case) -> Path | None:
        return Path(args.out, case.name.replace("/", "-")) if args.out else None

    left: list[Left] = []

    def told(case: Case, attempt: Attempt) -> Outcome:
        if args.everywhere:
            left.append(left_by(attempt.grade, to_html(attempt, {})))
        return outcome_of(case, attempt.grade)

    def run(pipeline: Pipeline, case: Case, on_sign: OnProgress) -> Outcome:
        task, submission = load_task(case.task), read_submission(case.path)
        try:
            attempt, _ = pipeline.grade(
                task, submission, options=options, on_progress=on_sign, out=folder(case)
            )
        except GraderError as error:
            return Outcome(
                case.name, Verdict.JUDGE_ERROR.value, 0.0, (type(error).__name__,), ("judge error",)
            )
        return told(case, attempt)

    def show(one: Outcome) -> None:
        print(
            f"{one.name:44} {one.verdict:10} {one.points:6.2f} {' '.join(one.codes):40} {', '.join(one.faults)}"
        )
        sys.stdout.flush()

    cases = [case for case in read_cases(args.folder) if re.search(args.only, case.name)]
    outcomes: list[Outcome] = []
    if args.replay:
        for case in cases:
            place = folder(case)
            if place is not None and Workspace(place).record.is_file():
                outcomes.append(told(case, judge(read_evidence(Workspace(place)), load_task(case.task))))
                show(outcomes[-1])
    else:
        outcomes += side_by_side(
            cases,
            run,
            runtime=args.runtime,
            jobs=args.jobs,
            alone=lambda _: False,
            on_progress=_quiet,
            on_done=show,
        )
    faults = Counter(re.sub("^false .*", "false", fault) for one in outcomes for fault in one.faults)
    print(f"{len(outcomes)} of {len(cases)} judged; {dict(faults) or 'all as they should be'}")
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1), encoding="utf-8")
    if args.everywhere:
        with tempfile.TemporaryDirectory() as database:
            hold_for_class(left, Path(database))
        print(f"{len(left)} are one number everywhere")
    other = list(differences(outcomes, json.loads(args.against.read_text()))) if args.against else []
    print("\n".join(other))
    return int(bool(faults) or bool(other))


def _quiet(_: Progress) -> None:
    """A line for each script is enough."""


if __name__ == "__main__":
    sys.exit(main())
