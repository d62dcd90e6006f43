"""Validation passes that ran through a network in training mode, told as a finding."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, places, ranks
from grader.checks.rule import Hit
from grader.checks.source.causes import lines
from grader.checks.source.models.evaluation_mode import mode_switches
from grader.checks.source.ranks.rank_guards import Guard
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.trace import Event


def validated_in_training(evidence: Evidence, found: Mapping[int, Sequence[Event]], otherwise: str) -> Hit:
    """What these ranks did, and what came of it.

    Args:
        evidence: all evidence of the run.
        found: rank -> its passes in training mode.
        otherwise: what to write where no test keeps these ranks from switching the mode.
    """
    script, traces = evidence.script, evidence.trace.ranks
    events = [e for told in found.values() for e in told]
    norms = max((w.num_batchnorm for r in traces for w in r.wraps), default=0)
    texts = "".join(t.text for t in script.trees)
    normalises = norms > 0 or "BatchNorm" in texts
    minds = normalises or "ropout" in texts
    layers = count(norms, "BatchNorm layer") if norms else "BatchNorm layers"
    kept = " what then goes into the checkpoint" if any(r.saves for r in traces if r.rank in found) else ""
    why = (
        f"Its {layers} scored each batch by its own statistics, and learned from the validation data{kept}."
        if normalises
        else "Dropout goes on dropping units there, so the metric depends on chance."
        if minds
        else "Its layers compute alike in both modes today; the next one may not."
    )
    otherwise += (
        " Statistics that are to settle when training is over take training samples." if normalises else ""
    )
    kept_from = _switched_on_some(script) if len(found) < len(traces) else None
    hint = otherwise
    nodes: tuple[ast.AST, ...] = ()
    if kept_from is not None:
        switch, guard = kept_from
        nodes = (switch, guard.test)
        why += f" {script.at(switch)} switches the mode on some ranks only ({script.quote(guard.test)})."
        hint = (
            f"Take {script.quote(switch)} at {script.at(switch)} out of the test of the rank at "
            f"{script.at(guard.test)}: all ranks that validate have to run it."
        )
    return Hit(
        message=(
            f"{ranks(found)} ran validation samples through the network in training mode ({count(len(events), 'run')} "
            f"of forward passes, at {at(events[0].site, 'an unknown line')}). {why}"
        ),
        hint=hint,
        where=tuple(dict.fromkeys((*lines(script, nodes), *places(e.site for e in events)))),
        ranks=tuple(sorted(found)),
        details={
            "runs_in_training_mode": {str(r): len(told) for r, told in found.items()},
            "batchnorm": norms,
        },
        severity=None if minds else Severity.HINT,
    )


def _switched_on_some(script: Script) -> tuple[ast.Call, Guard] | None:
    """A switch to evaluation mode that a test keeps some ranks from, and that test."""
    for switch in mode_switches(script):
        guard = script.replicas.on_some_ranks(switch)
        if guard is not None:
            return switch, guard
    return None
