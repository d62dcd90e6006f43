"""From evidence to findings: runs all rules of a task over one run and applies the one policy for how grave each is.

The policy, in full (the numbers are used in the comments below):

1. What the trace, the record or the scorer saw is a finding at its own severity; source hits of the same rule lend it
   their lines and confirm it. They never become findings of their own beside it.
2. Where the run showed the opposite, the run wins: an error or a warning of the source stays as a hint that says so and
   costs nothing, as its text may yet go wrong elsewhere; what was but a hint is not told at all.
3. Where the run could not tell, an error-level source hit is a hint, since text can be misread; warnings and hints keep
   their severity. Codes with `ON_PROFILE` can't show on that profile at all, so there the profile's severity counts.
4. A finding whose cause is itself found, and is no less grave, folds into the cause; its check stays contradicted.
5. `review` stays `review`: what is for staff never turns into advice for learners.
6. A hint that the task calls costly is a warning there, once the run has shown it.

Verdicts and points are not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from grader.checks.advice import advice_for
from grader.checks.evidence import Evidence
from grader.checks.phrases import continued
from grader.checks.rule import Hit, Observation, Rule, load_rules
from grader.checks.rule_failures import check_of, failure_of
from grader.checks.source.script import Script
from grader.errors import GraderError
from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.grade import CheckResult, State
from grader.model.task import Task

_STRENGTH = (EvidenceKind.EVALUATION, EvidenceKind.OUTSIDE, EvidenceKind.TRACE, EvidenceKind.SOURCE)
_ALWAYS = "TRUST"
NOT_RUN = "The script was not run, so only its text was looked at."
NOTHING_IN_SOURCE = "Nothing in the source says so."


@dataclass(frozen=True, slots=True)
class _Judged:
    """One rule's outcome before findings with a common cause are folded."""

    rule: Rule
    findings: tuple[Finding, ...]
    check: CheckResult


def apply_rules(evidence: Evidence, task: Task) -> tuple[tuple[Finding, ...], tuple[CheckResult, ...]]:
    """Judge one run.

    Args:
        evidence: everything that the run left.
        task: decides which codes apply; rules that guard the judge itself always do.

    Returns:
        Findings (gravest first, then by code and place; a rule that failed is told of for staff) and one check result
        per applicable rule (by code).
    """
    syntax = _syntax(evidence.script)
    if syntax is not None:
        return (syntax,), _silent(task)
    judged = [
        _costly(_or_failure(rule, lambda one: _judge_rule(one, evidence)), task) for rule in applicable(task)
    ]
    return _sorted(_fold(judged)), tuple(j.check for j in judged)


def _costly(judged: _Judged, task: Task) -> _Judged:
    """Policy 6."""
    if judged.rule.code not in task.costly:
        return judged
    findings = tuple(
        replace(f, severity=Severity.WARNING)
        if f.severity is Severity.HINT and f.evidence is not EvidenceKind.SOURCE
        else f
        for f in judged.findings
    )
    return replace(judged, findings=findings)


def apply_source_rules(script: Script, task: Task) -> tuple[tuple[Finding, ...], tuple[CheckResult, ...]]:
    """Judge a submission that was not run, by the same policy: the text alone is never more than 3 allows."""
    syntax = _syntax(script)
    if syntax is not None:
        return (syntax,), _silent(task)

    def read(rule: Rule) -> _Judged:
        findings, check = _from_source(rule, rule.source_hits(script), None, NOT_RUN)
        return _Judged(rule, findings, replace(check, state=State.NOT_OBSERVABLE, reason=NOT_RUN))

    judged = [_or_failure(rule, read) for rule in applicable(task)]
    return _sorted(_fold(judged)), tuple(j.check for j in judged)


def expected_findings(
    script: Script, task: Task, profile: str, shows: Callable[[Rule], bool]
) -> tuple[Finding, ...]:
    """What judging a run will find where it confirms the text, told as traced; and for staff, rules that failed.

    Args:
        script, task: what is judged, and by what.
        profile: where it will run.
        shows: whether a run there can tell what a rule asks about at all.
    """

    def expect(rule: Rule) -> _Judged:
        hits = rule.source_hits(script)
        if rule.check_run is None or not shows(rule) or rule.stops or not hits:
            return _Judged(rule, *_from_source(rule, hits, profile, NOTHING_IN_SOURCE))
        told = (_source_finding(rule, hit, hit.severity or rule.default_severity(profile)) for hit in hits)
        findings = tuple(replace(one, evidence=EvidenceKind.TRACE) for one in told)
        check = CheckResult(rule.code, State.CONTRADICTED, (EvidenceKind.TRACE,), findings[0].message)
        return _Judged(rule, findings, check)

    asked = (rule for rule in applicable(task) if rule.severity is not Severity.REVIEW)
    return _sorted(_fold([_costly(_or_failure(rule, expect), task) for rule in asked]))


def applicable(task: Task) -> tuple[Rule, ...]:
    """Rules that the task asks for, all where it names none; rules about the judge's own integrity always apply."""
    return tuple(
        r for r in load_rules() if not task.checks or r.code in task.checks or r.code.startswith(_ALWAYS)
    )


def _or_failure(rule: Rule, judge: Callable[[Rule], _Judged]) -> _Judged:
    try:
        return judge(rule)
    except GraderError as error:
        return _Judged(rule, (failure_of(rule.code, error),), check_of(rule))


def _judge_rule(rule: Rule, evidence: Evidence) -> _Judged:
    hits = rule.source_hits(evidence.script)
    observation = rule.observe(evidence)
    if observation is None:
        findings, check = _from_source(rule, hits, evidence.profile, NOTHING_IN_SOURCE)
    elif observation.state is State.CONTRADICTED:
        findings, check = _from_run(rule, hits, observation, evidence.profile)
    elif observation.state is State.VERIFIED:
        grave = (hit for hit in hits if (hit.severity or rule.severity) is not Severity.HINT)
        findings = tuple(_refuted(rule, hit, observation) for hit in grave)
        check = CheckResult(rule.code, State.VERIFIED, observation.evidence, observation.reason)
    else:
        findings, check = _from_source(rule, hits, evidence.profile, observation.reason, observation.state)
    return _Judged(rule, findings, check)


def _from_run(
    rule: Rule, hits: tuple[Hit, ...], observation: Observation, profile: str
) -> tuple[tuple[Finding, ...], CheckResult]:
    """Policy 1."""
    findings = []
    for number, hit in enumerate(observation.hits):
        # The source's lines go to the first finding: more than one is rare, and a line must not be blamed twice.
        told = hits if number == 0 else ()
        hint, fix = advice_for(hit, told)
        findings.append(
            Finding(
                code=rule.code,
                severity=hit.severity or rule.default_severity(profile),
                evidence=hit.evidence,
                message=hit.message,
                hint=hint or next((h.hint for h in hits if h.hint), ""),
                where=_places((*hit.where, *(place for h in told for place in h.where))),
                ranks=tuple(sorted(set(hit.ranks))),
                details=dict(hit.details),
                confirmed=bool(hits) and number == 0,
                fix=fix,
            )
        )
    kinds = {*observation.evidence, *((EvidenceKind.SOURCE,) if hits else ())}
    return tuple(findings), CheckResult(rule.code, State.CONTRADICTED, _ordered(kinds), observation.reason)


def _refuted(rule: Rule, hit: Hit, observation: Observation) -> Finding:
    """Policy 2 and 5."""
    severity = Severity.REVIEW if rule.severity is Severity.REVIEW else Severity.HINT
    return replace(_source_finding(rule, hit, severity), refuted=observation.reason, fix=None)


def _from_source(
    rule: Rule,
    hits: tuple[Hit, ...],
    profile: str | None,
    reason: str,
    untold: State = State.NOT_OBSERVABLE,
) -> tuple[tuple[Finding, ...], CheckResult]:
    """Policy 3; `reason` and `untold` say why the run did not tell: it could not, or there was nothing to tell."""
    findings = tuple(_source_finding(rule, hit, _from_text(rule, hit, profile)) for hit in hits)
    if not findings:
        # A rule that only reads the text has looked; one that wanted to see the run has not.
        alone = rule.check_run is None
        state = State.VERIFIED if alone else untold
        return (), CheckResult(rule.code, state, (EvidenceKind.SOURCE,) if alone else (), reason)
    weakened = all(
        f.severity.rank > (h.severity or rule.severity).rank for f, h in zip(findings, hits, strict=True)
    )
    if weakened:
        # What was not sure enough to be said at its own severity must not cost points either.
        text = f"The source suggests it, but the run could not confirm it: {continued(reason)}"
        return findings, CheckResult(rule.code, untold, (EvidenceKind.SOURCE,), text)
    return findings, CheckResult(rule.code, State.CONTRADICTED, (EvidenceKind.SOURCE,), findings[0].message)


def _from_text(rule: Rule, hit: Hit, profile: str | None) -> Severity:
    if profile in rule.on_profile and hit.severity is None:
        return rule.on_profile[profile]
    severity = hit.severity or rule.severity
    if severity is not Severity.ERROR:
        return severity
    # On a profile where the fault would show, a rule with `ON_PROFILE` still speaks from the text at full weight:
    # its fault hides from every run elsewhere, which is why the profile was asked.
    shows = bool(rule.on_profile) and profile is not None and profile not in rule.on_profile
    return Severity.ERROR if shows else Severity.HINT


def _source_finding(rule: Rule, hit: Hit, severity: Severity) -> Finding:
    return Finding(
        code=rule.code,
        severity=severity,
        evidence=EvidenceKind.SOURCE,
        message=hit.message,
        hint=hit.hint,
        where=_places(hit.where),
        ranks=tuple(sorted(set(hit.ranks))),
        details=dict(hit.details),
        fix=hit.fix,
    )


def _fold(judged: list[_Judged]) -> list[Finding]:
    """Policy 4: one cause is reported once, with the codes of what it brought about."""
    contradicted = {j.rule.code: j for j in judged if j.check.state is State.CONTRADICTED and j.findings}
    cause_of = {code: _root(code, contradicted) for code in contradicted}
    kept: list[Finding] = []
    for one in judged:
        code = one.rule.code
        if cause_of.get(code, code) != code or not one.findings:
            continue
        first, *others = one.findings
        if explains := sorted(c for c, root in cause_of.items() if root == code and c != code):
            graves = {c: _gravest(contradicted[c]).value for c in explains}
            milder = {"milder": {c: g for c, g in graves.items() if g != Severity.ERROR}}
            told = {"explains": explains} | (milder if any(milder.values()) else {})
            first = replace(first, details={**first.details, **told})
        kept += (first, *others)
    return kept


def _root(code: str, contradicted: dict[str, _Judged]) -> str:
    """The first cause at the end of the chain of explanations; the code itself where nothing explains it."""
    seen: set[str] = set()
    while code not in seen:
        seen.add(code)
        grave = _gravest(contradicted[code])
        causes = [c for c in contradicted[code].rule.explained_by if c in contradicted and c not in seen]
        # A mere hint must not swallow what gates acceptance.
        code = next((c for c in causes if _gravest(contradicted[c]).rank <= grave.rank), code)
    return code


def _gravest(judged: _Judged) -> Severity:
    return min((f.severity for f in judged.findings), key=lambda severity: severity.rank)


def _syntax(script: Script) -> Finding | None:
    return script.problem.finding() if script.problem is not None else None


def _silent(task: Task) -> tuple[CheckResult, ...]:
    reason = "The submission cannot be read as Python, so nothing else was looked at."
    return tuple(CheckResult(r.code, State.NOT_OBSERVABLE, (), reason) for r in applicable(task))


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=_key))


def _key(finding: Finding) -> tuple[int, str, str, int, int, tuple[int, ...], str]:
    place = finding.location or Location("", 0)
    return (
        finding.severity.rank, finding.code, place.path, place.line, place.column, finding.ranks, finding.message
    )  # fmt: skip


def _places(places: Iterable[Location]) -> tuple[Location, ...]:
    """Each line once; of two places on a line the more exact one, at the position of the first."""
    found: dict[tuple[str, int], Location] = {}
    for place in places:
        known = found.get((place.path, place.line))
        if known is None or (known.column == 0 and place.column > 0):
            found[place.path, place.line] = place
    return tuple(found.values())


def _ordered(kinds: Iterable[EvidenceKind]) -> tuple[EvidenceKind, ...]:
    return tuple(sorted(set(kinds), key=_STRENGTH.index))
