"""The shape of a rule, and how rules are found: by folder, without a list.

A rule is one module named `<code>_<name>.py` in lower case. It lies in `checks/rules/`, in a package that an entry
point of the group `grader.rules` names, or in the folder `rules/` beside a course's tasks. Its docstring is its page,
with the sections *What it finds*, *Why it matters*, *Example*, *Use instead*, *How it is seen*. It holds

    SEVERITY = Severity.ERROR                    # default
    ON_PROFILE = {"cpu": Severity.HINT}          # optional: where the profile decides (faults that gloo hides)
    EXPLAINED_BY = ("DIST001",)                  # optional: codes that are the cause; this finding then folds away
    CLOCKED = True                               # optional: it depends on the machine's clock, so no promise forbids it
    STOPS = True                                 # optional: a run shows it only by stopping at it
    NEEDS = Precondition.RANKS                           # optional: what a run must have for it to show at all
    def check_source(script: Script) -> Iterable[Hit]: ...      # optional; text only
    def check_run(evidence: Evidence) -> Observation: ...       # optional; trace, record and evaluation

and nothing else that is public: `grader.plugins` refuses what does not fit, with file and line.
A rule imports what only its run half needs inside of that half: whoever lints a text loads all rules and judges no run.
Rules never decide severity policy, verdicts or points; `checks.policy` and `evaluate.score` do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from grader.catalog.rule_codes import code_of
from grader.checks.answers import check_data, check_texts, check_tuples, must_be
from grader.checks.code_constants import code_tuple, unknown_codes
from grader.checks.needed_lines import with_needed_lines
from grader.checks.never_run import telling_what_never_runs
from grader.errors import GraderError
from grader.model.finding import EvidenceKind, Location, Severity
from grader.model.fix import Fix
from grader.model.grade import State
from grader.model.precondition import Precondition
from grader.plugins.loader import Plugin, failure, load, taken_twice
from grader.plugins.problems import PluginProblem
from grader.plugins.shape import Complaint, Constant, Function, Shape, of_type, unknown
from grader.plugins.sources import RULES, PluginFile, Stamp, stamp

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.source.script import Script

_FROM_OUTSIDE = {EvidenceKind.OUTSIDE, EvidenceKind.EVALUATION}


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a rule found its fault; the engine turns it into a Finding.

    Attributes are those of `Finding`; `severity` None means the rule's default. `evidence` matters for observations
    (`TRACE`, `OUTSIDE` or `EVALUATION`); source hits are always `SOURCE`. `fix`: see `source.edits`.
    """

    message: str
    hint: str = ""
    where: tuple[Location, ...] = ()
    ranks: tuple[int, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    severity: Severity | None = None
    evidence: EvidenceKind = EvidenceKind.TRACE
    fix: Fix | None = None

    def __post_init__(self) -> None:
        check_texts(message=self.message, hint=self.hint)
        check_tuples(where=(self.where, Location), ranks=(self.ranks, int))
        check_data(details=self.details)


@dataclass(frozen=True, slots=True)
class Observation:
    """What a rule saw in a run.

    Attributes:
        state: `VERIFIED` (looked; it is right), `CONTRADICTED` (hits say where), `NOT_OBSERVABLE` (it cannot be told),
            `NOT_REACHED` (the run did nothing of what the rule asks about).
        reason: one sentence: what was seen to be right (with numbers), or why nothing could be seen.
        hits: at least one exactly when contradicted.
        evidence: kinds that spoke; none where nothing was there to speak of.
    """

    state: State
    reason: str
    hits: tuple[Hit, ...] = ()
    evidence: tuple[EvidenceKind, ...] = (EvidenceKind.TRACE,)

    def __post_init__(self) -> None:
        check_texts(reason=self.reason)
        check_tuples(hits=(self.hits, Hit), evidence=(self.evidence, EvidenceKind))
        if (self.state is State.CONTRADICTED) != bool(self.hits):
            raise ValueError(f"an observation that is {self.state} has {len(self.hits)} hits")


def verified(reason: str, *evidence: EvidenceKind) -> Observation:
    """The run was observed and is right."""
    return Observation(State.VERIFIED, reason, (), evidence or (EvidenceKind.TRACE,))


def idle(reason: str) -> Observation:
    """The run did nothing of the kind: right where it did its work, and no merit of a run that did none."""
    return Observation(State.VERIFIED, reason, (), ())


def flagged(*hits: Hit) -> Observation:
    """The run shows the fault."""
    kinds = tuple(sorted({h.evidence for h in hits}))
    return Observation(State.CONTRADICTED, hits[0].message, hits, kinds)


def not_observable(reason: str) -> Observation:
    """The run could not tell."""
    return Observation(State.NOT_OBSERVABLE, reason, (), ())


def not_reached(reason: str) -> Observation:
    """The run ended before what the rule asks about, or never began it."""
    return Observation(State.NOT_REACHED, reason, (), ())


@dataclass(frozen=True, slots=True)
class Rule:
    """One loaded rule; `page` is its documentation in Markdown.

    `clocked`: what it finds depends on how fast the machine was at that moment, so that proofs of tasks look for it
    only where it was promised. `stops`: a run that comes to its end has not shown it. `needs`: what a run must have for
    it to show; None for nothing.
    """

    code: str
    name: str
    severity: Severity
    on_profile: dict[str, Severity]
    explained_by: tuple[str, ...]
    page: str
    check_source: Callable[[Script], Iterable[Hit]] | None
    check_run: Callable[[Evidence], Observation] | None
    file: PluginFile
    clocked: bool = False
    stops: bool = False
    needs: Precondition | None = None

    @property
    def title(self) -> str:
        """First line of the page."""
        return self.page.strip().splitlines()[0]

    def default_severity(self, profile: str | None) -> Severity:
        """Severity of its findings on a profile; None: as linted, where no run decides."""
        return self.on_profile.get(profile or "", self.severity)

    def source_hits(self, script: Script) -> tuple[Hit, ...]:
        """What its source half finds; nothing where it has none.

        Raises:
            TaskError, InfraError: it failed, and it is the course's own or not; never the learner's fault.
        """
        if self.check_source is None:
            return ()
        try:
            hits = tuple(self.check_source(script))
            must_be(Hit, *hits)
        except GraderError:
            raise
        except (Exception, SystemExit) as error:
            raise failure(
                f"rule {self.code} failed on the source", self.file, "check_source", error
            ) from error
        return _completed(hits, script)

    def observe(self, evidence: Evidence) -> Observation | None:
        """What its run half sees; None where it has none. Raises what `source_hits` does."""
        if self.check_run is None:
            return None
        try:
            lacking = self.needs if self.needs is not None and not evidence.offers(self.needs) else None
            if lacking is not None and lacking is not Precondition.GPUS:
                return not_observable(lacking.sentence)
            observation = self.check_run(evidence)
            must_be(Observation, observation)
            ungrouped = self.needs is Precondition.GROUP and not evidence.grouped
        except GraderError:
            raise
        except (Exception, SystemExit) as error:
            raise failure(f"rule {self.code} failed on the trace", self.file, "check_run", error) from error
        if (unseen := evidence.unseen(self.code)) and not _FROM_OUTSIDE & {*observation.evidence}:
            return not_observable(unseen)
        if observation.state is State.CONTRADICTED:
            return replace(observation, hits=_completed(observation.hits, evidence.script))
        # A script can fail over devices without having any; that it does right there cannot show.
        if lacking is not None:
            return not_observable(lacking.sentence)
        if ungrouped:
            return not_reached(
                "The ranks formed no process group, so this can't be seen yet: it counts once they are in one."
            )
        return observation


def _completed(hits: tuple[Hit, ...], script: Script) -> tuple[Hit, ...]:
    """The same hits; what advice to paste needs and the script lacks stands with it, and what never runs is told of."""
    completed = []
    for hit in hits:
        told = telling_what_never_runs(script, hit.message, hit.hint, hit.where)
        place = (told["where"][0].path, told["where"][0].line or 0) if told["where"] else ("", 0)
        hint = with_needed_lines(told["hint"], script, *place)
        # A fix is the hint as edits: another hint, no such fix.
        fix = hit.fix if told["hint"] == hit.hint else None
        completed.append(replace(hit, message=told["message"], hint=hint, where=told["where"], fix=fix))
    return tuple(completed)


PROFILES = ("cpu", "gpu", "workshop")
"""Profiles that rules may speak of."""


def load_rules() -> tuple[Rule, ...]:
    """All rules, sorted by code; a file that changes in the course's folder is read anew.

    Raises:
        TaskError: a rule of the course's own folder needs mending.
        InfraError: a rule of this package or of an installed one does.
    """
    return _load(stamp(RULES))


def in_words(code: str) -> str:
    """What a rule is about, in quotation marks, for sentences without a card beside them; else the code itself."""
    title = next((rule.title for rule in load_rules() if rule.code == code), "")
    return f"“{title.rstrip('.')}”" if title else code


@lru_cache(maxsize=4)
def _load(_stamp: Stamp) -> tuple[Rule, ...]:
    return tuple(sorted(map(_rule, load(RULES, SHAPE, _together)), key=lambda rule: rule.code))


def _rule(plugin: Plugin) -> Rule:
    return Rule(
        code=code_of(plugin.name),
        name=plugin.name.partition("_")[2],
        severity=plugin.get("SEVERITY"),
        on_profile=dict(plugin.get("ON_PROFILE", {})),
        explained_by=tuple(plugin.get("EXPLAINED_BY", ())),
        page=plugin.page,
        check_source=plugin.get("check_source"),
        check_run=plugin.get("check_run"),
        file=plugin.file,
        clocked=plugin.get("CLOCKED", False),
        stops=plugin.get("STOPS", False),
        needs=plugin.get("NEEDS"),
    )


def _severities_by_profile(value: Any) -> Iterator[Complaint]:
    if not isinstance(value, Mapping):
        yield Complaint(f'is {value!r:.60}; it must be a mapping such as {{"cpu": Severity.HINT}}')
        return
    for profile, severity in value.items():
        if profile not in PROFILES:
            yield unknown(str(profile), PROFILES, "profile")
        yield from _severity(severity)


def _together(plugins: Sequence[Plugin]) -> Iterator[PluginProblem]:
    """Codes that nobody has, and codes that two have."""
    yield from unknown_codes(plugins, "EXPLAINED_BY")
    yield from taken_twice(plugins, "code", lambda one: code_of(one.name))


_precondition = of_type(Precondition, "a precondition such as `Precondition.RANKS`")
_severity = of_type(Severity, "a severity such as `Severity.ERROR`")
SHAPE = Shape(
    what="a rule",
    constants=(
        Constant("SEVERITY", "SEVERITY = Severity.ERROR", _severity),
        Constant("ON_PROFILE", 'ON_PROFILE = {"cpu": Severity.HINT}', _severities_by_profile, required=False),
        Constant("EXPLAINED_BY", 'EXPLAINED_BY = ("DIST001",)', code_tuple, required=False),
        Constant("CLOCKED", "CLOCKED = True", of_type(bool, "True or False"), required=False),
        Constant("STOPS", "STOPS = True", of_type(bool, "True or False"), required=False),
        Constant("NEEDS", "NEEDS = Precondition.RANKS", _precondition, required=False),
    ),
    functions=(
        Function(
            "check_source",
            {"script": "Script"},
            ("Iterable[Hit]", "Iterator", "Generator", "Collection", "Sequence", "list", "tuple"),
            required=False,
        ),
        Function("check_run", {"evidence": "Evidence"}, ("Observation",), required=False),
    ),
    file_name=re.compile(r"[a-z]{2,12}\d{3}_[a-z0-9_]+"),
    file_example="data002_missing_set_epoch.py",
    sections=("What it finds", "Why it matters", "Example", "Use instead", "How it is seen"),
)
