"""Why did this run end badly? Asks every known explanation, the most specific first, and takes the first that fits.

An explanation is one module; its name is its id, its docstring its page (a title, then *What happened*, *Why*, *Mend
it*). It lies in `checks/diagnoses/`, in a package that an entry point of the group `grader.diagnoses` names, or in the
folder `diagnoses/` beside a course's tasks. It holds

    ORDER = 20                                                 # lower is more specific and asked earlier
    TOLD_BY = ("DIST009",)                                     # optional: rules that know the line and what to write
    def diagnose(run: FailedRun) -> Diagnosis | None: ...      # None: this is not what happened

Orders: 10 and 20 for words or stacks that mean one thing only, 30 to 50 for what needs more than one rank to tell,
90 and up for the last resorts. Diagnoses explain; they decide no verdict, no severity and no points. Where a rule of
`TOLD_BY` has found the cause in the script, its line and its advice stand in the diagnosis, too: a report gives one
advice for one fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from grader.checks.answers import check_data, check_texts, check_tuples, must_be
from grader.checks.code_constants import code_tuple, unknown_codes
from grader.checks.evidence import Evidence
from grader.checks.needed_lines import in_own_names
from grader.checks.rule_failures import failure_of
from grader.checks.run.endings.failed_run import FailedRun
from grader.errors import GraderError
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Finding, Location, Severity
from grader.model.run import Ending
from grader.plugins.loader import Plugin, failure, load, taken_twice
from grader.plugins.problems import PluginProblem
from grader.plugins.shape import Constant, Function, Shape, of_type
from grader.plugins.sources import DIAGNOSES, PluginFile, Stamp, stamp


@dataclass(frozen=True, slots=True)
class Explanation:
    """One loaded module; `page` is its documentation in Markdown."""

    id: str
    order: int
    told_by: tuple[str, ...]
    page: str
    diagnose: Callable[[FailedRun], Diagnosis | None]
    file: PluginFile

    @property
    def title(self) -> str:
        """First line of the page."""
        return self.page.strip().splitlines()[0]


def load_explanations() -> tuple[Explanation, ...]:
    """All explanations, the most specific first; a file that changes in the course's folder is read anew.

    Raises:
        TaskError: an explanation of the course's own folder needs mending.
        InfraError: one of this package or of an installed one does.
    """
    return _load(stamp(DIAGNOSES))


def diagnose(
    evidence: Evidence, findings: Sequence[Finding] = ()
) -> tuple[Diagnosis | None, tuple[Finding, ...]]:
    """The one explanation of a run that crashed, stood still, or ran out of time or memory; else None.

    Args:
        evidence: the run.
        findings: what the rules found, gravest first.

    Returns:
        The explanation, and for staff those that failed, as `rule_failures` tells of them: the next one was asked.
    """
    if evidence.record.ending in (Ending.COMPLETED, Ending.INTERRUPTED):
        return None, ()
    case, failures = FailedRun(evidence), []
    for one in load_explanations():
        try:
            found = _asked(one, case)
        except GraderError as error:
            failures.append(failure_of(one.id, error))
            continue
        if found is not None:
            path = found.where[0].path if found.where else ""
            found = replace(found, id=one.id, hint=in_own_names(found.hint, evidence.script, path))
            return _led(found, (f for f in findings if f.code in one.told_by)), tuple(failures)
    return None, tuple(failures)


def _asked(one: Explanation, case: FailedRun) -> Diagnosis | None:
    try:
        found = one.diagnose(case)
        if found is not None:
            must_be(Diagnosis, found)
            check_texts(title=found.title, explanation=found.explanation, hint=found.hint)
            check_tuples(where=(found.where, Location), ranks=(found.ranks, int))
            check_data(details=found.details)
        return found
    except GraderError:
        raise
    except (Exception, SystemExit) as error:
        raise failure(f"diagnosis {one.id} failed", one.file, "diagnose", error) from error


def _led(found: Diagnosis, findings: Iterable[Finding]) -> Diagnosis:
    """The diagnosis with the line and the advice of the first rule that saw the cause."""
    seen = [f for f in findings if not f.refuted and f.hint]
    # Where the run could not confirm what the text says, it is the cause if nothing else is.
    sure = [f for f in seen if f.severity is Severity.ERROR] or (seen if len(seen) == 1 else [])
    if not sure:
        return found
    cause = sure[0]
    first = cause.where[:1]
    rest = (w for w in found.where if all((w.path, w.line) != (f.path, f.line) for f in first))
    return replace(found, hint=cause.hint, where=(*first, *rest))


@lru_cache(maxsize=4)
def _load(_stamp: Stamp) -> tuple[Explanation, ...]:
    found = (
        Explanation(p.name, p.get("ORDER"), p.get("TOLD_BY", ()), p.page, p.get("diagnose"), p.file)
        for p in load(DIAGNOSES, SHAPE, _together)
    )
    return tuple(sorted(found, key=lambda e: (e.order, e.id)))


def _together(plugins: Sequence[Plugin]) -> Iterator[PluginProblem]:
    """Codes that no rule has, and names that two have."""
    yield from unknown_codes(plugins, "TOLD_BY")
    yield from taken_twice(plugins, "name", lambda one: one.name)


SHAPE = Shape(
    what="a diagnosis",
    constants=(
        Constant("ORDER", "ORDER = 20", of_type(int, "a whole number")),
        Constant("TOLD_BY", 'TOLD_BY = ("DIST009",)', code_tuple, required=False),
    ),
    functions=(Function("diagnose", {"run": "FailedRun"}, ("Diagnosis | None",)),),
    file_name=re.compile(r"[a-z][a-z0-9_]*"),
    file_example="port_in_use.py",
    sections=("What happened", "Why", "Mend it"),
)
