"""The script reaches for what watches it.

## What it finds
Code in a training script that looks into other processes, walks over all live objects or foreign stack frames, writes
to descriptors that it did not open, replaces clocks, or names the judge's own modules.

## Why it matters
A training script has no use for any of it, and the points that rest on the trace are worth something only where nobody
wrote into it. Most of it is no proof of anything: debuggers, profilers and curious people do the same. A person looks.

## Example
```python
import gc
import os

pipes = [o for o in gc.get_objects() if hasattr(o, "fileno")]
os.write(7, b'{"e": "step"}')
```

## Use instead
```python
import gc
import os

gc.collect()
with open(os.path.join(os.environ["OUTPUT_DIR"], "log.txt"), "a") as log:
    log.write("epoch done")
```

## How it is seen
In the source, by what is called and named. In the run, by Python's own audit events where the script's own code, and
no library, is the caller. Findings of this rule are for staff alone.

Looking is no offence: who lists open descriptors, walks over objects or reads a caller's frame is reported, no more.
A run is held for review only where honest code can't be the reason: a descriptor that was searched for is written to,
copied or closed, what was found inside foreign functions is used to write, or the judge's own modules are imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import count, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.files.process_access import ProcessAccess, own_packages, process_accesses
from grader.checks.source.script import Script
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import Event

SEVERITY = Severity.REVIEW

_DESCRIPTOR = re.compile(r"/proc/[^/]+/fd/(\d{1,9})")
_FIRST_OF_OURS = 1000
"""Descriptors from here on are the supervisor's and the probe's (`launch.rank`); a script's own begin at 3."""
_MAX_FACTS = 16
_MOST_TOLD, _MOST_OF_FACT = 3, 200
_SUBJECT = "what the script reaches for beside its training"
_ASK = "A training script needs none of it; ask the learner what it is for."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag calls, names and paths that lead to the judge or to other processes."""
    for reach in sorted(process_accesses(script), key=lambda r: _order(script, r)):
        yield Hit(
            message=f"{script.at(reach.node)} {reach.why}: {script.quote(reach.node)}.",
            hint=_ASK,
            where=(script.location(reach.node),),
            details={"holds": reach.holds},
        )


def _order(script: Script, reach: ProcessAccess) -> tuple[str, int, int, str]:
    place = script.location(reach.node)
    return place.path, place.line, place.column, reach.why


def check_run(evidence: Evidence) -> Observation:
    """Gather what the script's own code reached for while it ran, and what its text does with such finds."""
    from grader.probe.trace import events

    told = [(r.rank, e) for r in evidence.trace.ranks for e in r.events(events.REACH)]
    used = [r for r in process_accesses(evidence.script) if r.holds]
    if told or used:
        sites = dict.fromkeys(e.site for _, e in told)
        what = dict.fromkeys(str(e.fields.get("what", "")) for _, e in told)
        who = sorted({rank for rank, _ in told})
        taken = [f"rank {rank}: {_target(e)}" for rank, e in told if _takes(evidence, e)]
        facts = [f"{evidence.script.at(r.node)} {r.why}" for r in used] + taken[:_MAX_FACTS]
        reached = (
            f"{ranks(who)} reached {count(len(told), 'time')} for what a training script has no use for "
            f"({', '.join(what)})."
            if told
            else "The script's text uses what it dug up."
        )
        return flagged(
            Hit(
                message=f"{reached} {_held_for(facts)}" if facts else reached,
                hint=_ASK if facts else "It decides nothing by itself; ask the learner what it is for.",
                where=places(sites),
                ranks=tuple(who),
                details={
                    "holds": bool(facts),
                    "subjects": [_SUBJECT] if facts else [],
                    "facts": facts,
                    "reaches": [f"rank {rank}: {_target(e)}" for rank, e in told[:_MAX_FACTS]],
                },
                evidence=EvidenceKind.TRACE if told else EvidenceKind.SOURCE,
            )
        )
    if not any(r.start for r in evidence.trace.ranks):
        return not_observable("The ranks told nothing.")
    return verified("The script's own code kept to its own process.")


def _held_for(facts: list[str]) -> str:
    rest = len(facts) - _MOST_TOLD
    more = f", and {count(rest, 'more such thing')}" if rest > 0 else ""
    # Names of files and modules are the script's own, and may be of any length.
    told = "; ".join(fact[:_MOST_OF_FACT] for fact in facts[:_MOST_TOLD])
    return f"Honest code has no reason for this, so a person looks before it counts: {told}{more}."


def _target(event: Event) -> str:
    return f"{event.fields.get('what', '')} {event.fields.get('target', '')}".strip()


def _takes(evidence: Evidence, event: Event) -> bool:
    """Whether the judge's own module was imported, or a descriptor opened again that no script opens itself."""
    if event.fields.get("what") == "writer":
        return True
    if event.fields.get("what") == "import":
        return "grader" not in own_packages(evidence.script)
    found = _DESCRIPTOR.fullmatch(str(event.fields.get("target", "")))
    return found is not None and int(found[1]) >= _FIRST_OF_OURS
