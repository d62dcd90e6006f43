"""The shape of a rule, and how rules are found: by folder, without a list.

A rule is one module below `checks/rules/`, named `<code>_<name>.py` in lower case. Its docstring is its page, with
the sections *What it finds*, *Why it matters*, *Example*, *Use instead*, *How it is seen*. It holds

    SEVERITY = Severity.ERROR                    # default
    ON_PROFILE = {"cpu": Severity.HINT}          # optional: where the profile decides (faults that gloo hides)
    EXPLAINED_BY = ("DIST001",)                  # optional: codes that are the cause; this finding then folds away
    CLOCKED = True                               # optional: it depends on the machine's clock, so no promise forbids it
    def check_source(script: Script) -> Iterable[Hit]: ...      # optional; text only
    def check_trace(seen: Seen) -> Look: ...                    # optional; trace, record and evaluation

Rules never decide severity policy, verdicts or points; `checks.judge` and `evaluate.score` do.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from grader.checks import rules as rules_package
from grader.model.finding import Evidence, Location, Severity
from grader.model.grade import State

if TYPE_CHECKING:
    from grader.checks.seen import Seen
    from grader.checks.text.source import Script


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a rule found its fault; the engine turns it into a Finding.

    Attributes are those of `Finding`; `severity` None means the rule's default. `evidence` matters for trace looks
    (`TRACE`, `OUTSIDE` or `EVALUATION`); source hits are always `SOURCE`.
    """

    message: str
    hint: str = ""
    where: tuple[Location, ...] = ()
    ranks: tuple[int, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    severity: Severity | None = None
    evidence: Evidence = Evidence.TRACE


@dataclass(frozen=True, slots=True)
class Look:
    """What a rule saw in a run.

    Attributes:
        state: `VERIFIED` (looked; it is right), `CONTRADICTED` (hits say where), `NOT_OBSERVABLE`.
        reason: one sentence: what was seen to be right (with numbers), or why nothing could be seen.
        hits: at least one exactly when contradicted.
        evidence: kinds that spoke.
    """

    state: State
    reason: str
    hits: tuple[Hit, ...] = ()
    evidence: tuple[Evidence, ...] = (Evidence.TRACE,)


def verified(reason: str, *evidence: Evidence) -> Look:
    """A look that found everything right."""
    return Look(State.VERIFIED, reason, (), evidence or (Evidence.TRACE,))


def flagged(*hits: Hit) -> Look:
    """A look that found the fault."""
    kinds = tuple(sorted({h.evidence for h in hits}))
    return Look(State.CONTRADICTED, hits[0].message, hits, kinds)


def unseen(reason: str) -> Look:
    """A look that could not tell."""
    return Look(State.NOT_OBSERVABLE, reason, (), ())


@dataclass(frozen=True, slots=True)
class Rule:
    """One loaded rule; `page` is its documentation in Markdown.

    `clocked`: what it finds depends on how fast the machine was at that moment, so that proofs of tasks look for it
    only where it was promised.
    """

    code: str
    name: str
    severity: Severity
    on_profile: dict[str, Severity]
    explained_by: tuple[str, ...]
    page: str
    check_source: Callable[[Script], Iterable[Hit]] | None
    check_trace: Callable[[Seen], Look] | None
    clocked: bool = False

    @property
    def title(self) -> str:
        """First line of the page."""
        return self.page.strip().splitlines()[0]

    def default_severity(self, profile: str | None) -> Severity:
        """Severity of its findings on a profile; None: as linted, where no run decides."""
        return self.on_profile.get(profile or "", self.severity)


@cache
def load_rules() -> tuple[Rule, ...]:
    """All rules of the folder, sorted by code."""
    found = []
    for info in pkgutil.iter_modules(rules_package.__path__):
        found.append(_rule(info.name, importlib.import_module(f"{rules_package.__name__}.{info.name}")))
    return tuple(sorted(found, key=lambda r: r.code))


def _rule(module_name: str, module: ModuleType) -> Rule:
    code, _, name = module_name.partition("_")
    return Rule(
        code=code.upper(),
        name=name,
        severity=module.SEVERITY,
        on_profile=dict(getattr(module, "ON_PROFILE", {})),
        explained_by=tuple(getattr(module, "EXPLAINED_BY", ())),
        page=(module.__doc__ or "").strip(),
        check_source=getattr(module, "check_source", None),
        check_trace=getattr(module, "check_trace", None),
        clocked=bool(getattr(module, "CLOCKED", False)),
    )
