"""Why did this run end badly? Asks every known explanation, the most specific first, and takes the first that fits.

An explanation is one module below `checks/diagnoses/`; its name is its id, its docstring its page (a title, then *What
happened*, *Why*, *Mend it*). It holds

    ORDER = 20                                             # lower is more specific and asked earlier
    def diagnose(case: Case) -> Diagnosis | None: ...      # None: this is not what happened

Orders: 10 and 20 for words or stacks that mean one thing only, 30 to 50 for what needs more than one rank to tell,
90 and up for the last resorts. Diagnoses explain; they decide no verdict, no severity and no points.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType

from grader.checks import diagnoses as diagnoses_package
from grader.checks.seen import Seen
from grader.checks.told.case import Case
from grader.errors import GraderError, InfraError
from grader.model.diagnosis import Diagnosis
from grader.model.run import Ending


@dataclass(frozen=True, slots=True)
class Explanation:
    """One loaded module; `page` is its documentation in Markdown."""

    id: str
    order: int
    page: str
    diagnose: Callable[[Case], Diagnosis | None]

    @property
    def title(self) -> str:
        """First line of the page."""
        return self.page.strip().splitlines()[0]


@cache
def load_explanations() -> tuple[Explanation, ...]:
    """All explanations of the folder, the most specific first."""
    found = []
    for info in pkgutil.iter_modules(diagnoses_package.__path__):
        module = importlib.import_module(f"{diagnoses_package.__name__}.{info.name}")
        found.append(_explanation(info.name, module))
    return tuple(sorted(found, key=lambda e: (e.order, e.id)))


def diagnose(seen: Seen) -> Diagnosis | None:
    """The one explanation of a run that crashed, stood still, or ran out of time or memory; else None.

    Raises:
        InfraError: an explanation failed; that is our fault, never the learner's.
    """
    if seen.record.ending in (Ending.COMPLETED, Ending.INTERRUPTED):
        return None
    case = Case(seen)
    for one in load_explanations():
        try:
            found = one.diagnose(case)
        except GraderError:
            raise
        except Exception as error:
            raise InfraError(f"diagnosis {one.id} failed: {type(error).__name__}: {error}") from error
        if found is not None:
            return replace(found, id=one.id)
    return None


def _explanation(name: str, module: ModuleType) -> Explanation:
    return Explanation(name, module.ORDER, (module.__doc__ or "").strip(), module.diagnose)
