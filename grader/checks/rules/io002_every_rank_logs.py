"""Every rank prints the same lines.

## What it finds
Prints, progress bars, TensorBoard writers, trackers and configured loggers that all ranks reach.

## Why it matters
With N ranks everything is said N times, interleaved, and nobody can tell whose loss is whose. Trackers start N
runs, and N writers in one folder mix their curves.

## Example
```python
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
for epoch in range(10):
    loss = train_one_epoch(model)
    loss.backward()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
for epoch in range(10):
    loss = train_one_epoch(model)
    loss.backward()
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}")
dist.destroy_process_group()
```

## How it is seen
In the source: output that some path of calls reaches without a test of the rank. Lines that name their rank are
taken for meant, and so is a script that replaces `print`, or that sends its output elsewhere or configures its logger
by rank. In the run: lines that several ranks wrote alike; one or two of them are a hint.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import count, every, ranks
from grader.checks.rule import Hit, Observation, flagged, idle, not_observable, verified
from grader.checks.source.calls.arguments import arguments_of, keyword_value
from grader.checks.source.calls.calls_from_elsewhere import entry_on_every_rank, said_of_entry
from grader.checks.source.ranks.main_rank_blocks import put_under_main_rank
from grader.checks.source.ranks.muted_output import LOG_METHODS, is_logger, logs_by_rank, prints_by_rank
from grader.checks.source.ranks.written_ranks import global_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import ancestors, start
from grader.checks.source.values.reaching_assignments import leaves
from grader.model.finding import EvidenceKind, Location, Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
NEEDS = Precondition.RANKS
# Where each rank starts a whole group, each group has a rank 0 that may speak.
EXPLAINED_BY = ("DIST004", "DIST006", "DIST013")
_MIN_LINES = 3
"""One or two lines of a rank are a greeting, not a log."""
_BARS = {
    f"tqdm{module}.{name}"
    for module in ("", ".auto", ".autonotebook", ".notebook", ".rich", ".std")
    for name in ("tqdm", "trange")
} | {"rich.progress.track", "alive_progress.alive_bar"}
_WRITERS = {
    "torch.utils.tensorboard.SummaryWriter", "torch.utils.tensorboard.writer.SummaryWriter",
    "tensorboardX.SummaryWriter", "wandb.init", "mlflow.start_run", "tensorboard_logger.Logger",
    "comet_ml.Experiment", "comet_ml.start", "neptune.init_run", "clearml.Task.init", "aim.Run", "swanlab.init",
    "visdom.Visdom",
}  # fmt: skip


def check_source(script: Script) -> Iterable[Hit]:
    """Flag all output that every rank reaches, as one finding with all its lines."""
    if not script.joins_group or not script.training.trains:
        return
    found = sorted(
        (c for c in _outputs(script) if _reached(script, c) and not _failing(script, c)),
        key=lambda c: (script.location(c).path != "train.py", script.location(c).path, start(c)),
    )
    if not found:
        return
    first = found[0]
    more = f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""
    yield Hit(
        message=f"{script.at(first)} is reached by every rank{more}: {script.quote(first)}. With N ranks it is "
        "said N times, and nobody can tell the copies apart." + said_of_entry(script, first),
        hint=f"Put it under `if {script.owners.main_test(first) or 'dist.get_rank() == 0'}:`, or name the rank in the "
        "line where every rank's own value matters.",
        where=tuple(script.location(c) for c in found),
        fix=_fix(script, found),
        severity=Severity.HINT if said_of_entry(script, first) else None,
    )


def _reached(script: Script, call: ast.Call) -> bool:
    return script.guards.on_every_rank(call) or entry_on_every_rank(script, call) is not None


def _fix(script: Script, found: list[ast.Call]) -> Fix | None:
    edits, bars = Edits(script), [c for c in found if c in script.calls(*_BARS)]
    if set(found) & set(script.calls(*_WRITERS)):
        edits.give_up()  # every use of a writer would need the test, too
    put_under_main_rank(script, edits, [c for c in found if c not in bars])
    for bar in bars:
        edits.give(bar, "disable", f"{global_rank(script, edits, bar)} != 0")
    return edits.fix("Says it on rank 0 alone.")


def _outputs(script: Script) -> Iterable[ast.Call]:
    if not prints_by_rank(script):
        for call in script.calls(
            "print", "pprint.pprint", "rich.print", "sys.stdout.write", "tqdm.tqdm.write"
        ):
            if not any(script.ranks.shows_rank(a) for a in arguments_of(call)) and not _elsewhere(
                script, call
            ):
                yield call
    for name in _BARS:
        for call in script.calls(name):
            disabled = script.argument(call, "disable")
            shown = disabled is None or script.values.constant(disabled) is False
            if shown and not any(script.ranks.shows_rank(k.value) for k in call.keywords):
                yield call
    for name in _WRITERS:
        for call in script.calls(name):
            own = any(k.arg in ("group", "mode", "settings") for k in call.keywords)
            if not own and not any(
                script.ranks.shows_rank(n) for a in arguments_of(call) for n in ast.walk(a)
            ):
                yield call
    yield from _log_lines(script)


def _log_lines(script: Script) -> Iterable[ast.Call]:
    """Lines of a logger that some line sets up for all ranks alike; without set-up, `info` says nothing."""
    if not script.calls("logging.basicConfig") or logs_by_rank(script):
        return
    for call in script.called(*LOG_METHODS):
        logs = isinstance(call.func, ast.Attribute) and is_logger(script, call.func.value)
        if logs and not any(script.ranks.shows_rank(a) for a in arguments_of(call)):
            yield call


def _elsewhere(script: Script, call: ast.Call) -> bool:
    """`print(…, file=f)` into a file of one's own is no output of the run."""
    target = keyword_value(call, "file")
    return target is not None and script.names.qualified(target) not in ("sys.stdout", "sys.stderr")


def _failing(script: Script, call: ast.Call) -> bool:
    """A rank that reports its own failure speaks for itself alone."""
    tree = script.names.tree(call)
    for above in ancestors(tree.parent, call):
        if isinstance(above, ast.ExceptHandler):
            return True
        if (
            isinstance(above, ast.If)
            and tree.inside(call, above)
            and any(
                leaves(script.names, b) and any(tree.inside(call, s) for s in b)
                for b in (above.body, above.orelse)
            )
        ):
            return not isinstance(above.body[-1], ast.Break | ast.Continue)
    return False


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks beside rank 0 that print much the same lines without saying who speaks."""
    from grader.checks.run.printed_lines import names_rank, printed_lines, printing_calls, shape_of

    counts = {r.rank: r.stdout_lines for r in evidence.record.ranks}
    chatty = [r for r in counts if r > 0 and counts[r] >= _MIN_LINES]
    few = _few(evidence, counts) if not chatty else None
    if few is not None:
        return flagged(few)
    if not chatty:
        if counts.get(0, 0) < _MIN_LINES:
            return idle("No rank printed more than a line or two.")
        said = count(counts[0], "line")
        return verified(f"Rank 0 printed {said}, the other ranks next to nothing.", EvidenceKind.OUTSIDE)
    if len(evidence.logs) <= max(chatty):
        return not_observable("What the ranks printed was not kept.")
    base = Counter(shape_of(line) for line in printed_lines(evidence.logs[0][0]))
    echoing = []
    for rank in chatty:
        lines = printed_lines(evidence.logs[rank][0])
        plain = [line for line in lines if not names_rank(line, rank, len(counts))]
        same = sum((base & Counter(shape_of(line) for line in plain)).values())
        if same >= _MIN_LINES and 2 * same >= len(lines):
            echoing.append((rank, same, plain[0]))
    if not echoing:
        return verified(
            "Lines of other ranks than 0 say which rank speaks, or something of their own.",
            EvidenceKind.OUTSIDE,
        )
    where = printing_calls(evidence.script, echoing[0][2])
    meant = where or tuple(p for hit in check_source(evidence.script) for p in hit.where)
    return flagged(replace(_run_hit(counts, echoing, meant), where=where))


def _few(evidence: Evidence, counts: dict[int, int]) -> Hit | None:
    """A line that the text gives to every rank, and that every rank did print: at the end, or at an early stop."""
    from grader.checks.run.printed_lines import printed_lines, printing_calls, shape_of

    if len(evidence.logs) < len(counts) or not all(counts.values()):
        return None
    meant = {place for hit in check_source(evidence.script) for place in hit.where}
    said = [printed_lines(evidence.logs[rank][0]) for rank in counts]
    for line in said[-1]:
        made = tuple(place for place in printing_calls(evidence.script, line) if place in meant)
        if made and all(any(shape_of(one) == shape_of(line) for one in lines) for lines in said):
            return Hit(
                message=f"`{made[0].path}:{made[0].line}` was printed by {every(len(counts), 'rank')}: “{line[:80]}”. "
                "One line more or less harms nobody, but what all ranks say alike is one rank's to say.",
                hint="Print it on rank 0 alone: `if dist.get_rank() == 0:` in front of it.",
                where=made,
                ranks=tuple(counts),
                details={"lines_by_rank": {str(r): n for r, n in counts.items()}, "example": line[:200]},
                severity=Severity.HINT,
                evidence=EvidenceKind.OUTSIDE,
            )
    return None


def _run_hit(counts: dict[int, int], echoing: list[tuple[int, int, str]], meant: tuple[Location, ...]) -> Hit:
    rank, same, example = echoing[0]
    who = tuple(r for r, _, _ in echoing)
    place = f"`{meant[0].path}:{meant[0].line}`" if meant else "the `print`"
    return Hit(
        message=(
            f"{ranks(who)} printed the same kind of lines as rank 0 ({same:,} of rank {rank}'s "
            f"{count(counts[rank], 'line')}, such as “{example[:80]}”). With k ranks every message stands "
            "k times in the log, and which rank says what can't be told."
        ),
        hint=(
            f"Print on rank 0 alone, `if dist.get_rank() == 0:` in front of {place}, "
            'or begin each line with its rank (`f"[rank {dist.get_rank()}] …"`).'
        ),
        ranks=who,
        details={"lines_by_rank": {str(r): n for r, n in counts.items()}, "example": example[:200]},
        evidence=EvidenceKind.OUTSIDE,
    )
