"""The script reaches for what watches it.

## What it finds
Code in a training script that looks into other processes, walks over all live objects or foreign stack frames, writes
to descriptors that it did not open, replaces clocks, or names the judge's own modules.

## Why it matters
A training script has no use for any of it, and the points that rest on the trace are worth something only where nobody
wrote into it. It is no proof of anything: debuggers, profilers and curious people do the same. A person looks.

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
no library, is the caller. Findings of this rule are for staff alone and never decide a verdict.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from grader.checks.quote import count, places, ranks
from grader.checks.rule import Hit, Look, flagged, unseen, verified
from grader.checks.seen import Seen
from grader.checks.text.source import Script
from grader.checks.text.tree import Tree
from grader.model.finding import Severity
from grader.probe import events

SEVERITY = Severity.REVIEW

_CALLS = {
    "gc.get_objects": "walks over all live objects",
    "gc.get_referrers": "walks from objects to whoever holds them",
    "gc.get_referents": "walks from objects to what they hold",
    "sys._current_frames": "looks at the stack of every thread",
    "sys.settrace": "watches every line that runs",
    "sys.setprofile": "watches every call that is made",
    "threading.settrace": "watches every line that runs",
    "threading.setprofile": "watches every call that is made",
    "sys.addaudithook": "listens to the interpreter's own events",
    "os.closerange": "closes descriptors that it did not open",
    "os.setuid": "changes its user",
    "os.seteuid": "changes its user",
    "os.setreuid": "changes its user",
    "os.setresuid": "changes its user",
    "os.pidfd_getfd": "takes a descriptor from another process",
}
_FRAMES = {"sys._getframe", "inspect.currentframe", "inspect.stack"}
_BY_NUMBER = {
    "os.write",
    "os.fdopen",
    "os.dup2",
    "os.close",
    "open",
    "os.sendfile",
    "os.ftruncate",
    "os.lseek",
}
_CLOCKS = {"time.time", "time.monotonic", "time.perf_counter", "time.process_time", "json.dumps", "os.write"}
_INSIDE = re.compile(r"^/proc/(self|\d+|\{|%|$)(?!/(status|statm|stat|cgroup|limits|io)\b)")
_JUDGE = re.compile(r"\bgrader\.(probe|launch|checks|run|evaluate)\b|_warm_parent|\bgrader/(probe|launch)\b")
_UPWARDS = {"f_back", "f_locals", "f_globals", "tb_frame"}


def check_source(script: Script) -> Iterable[Hit]:
    """Flag calls, names and paths that lead to the judge or to other processes."""
    for tree in script.trees:
        for node, why in sorted(_reaches(script, tree), key=lambda found: (found[0].lineno, found[1])):
            yield Hit(
                message=f"{script.at(node)} {why}: {script.quote(node)}.",
                hint="A training script needs none of it; ask the learner what it is for.",
                where=(script.location(node),),
                details={"holds": False},
            )


def _reaches(script: Script, tree: Tree) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    for call in tree.calls:
        name = script.names.qualified(call.func) or ""
        if name in _CALLS:
            yield call, _CALLS[name]
        elif name in _FRAMES and _climbs(tree, call):
            yield call, "climbs into the frames of its callers"
        elif name in _BY_NUMBER and _foreign_descriptor(script, call):
            yield call, "uses a descriptor by its number"
        elif name == "os.kill" and call.args and _is_parent(script, call.args[0]):
            yield call, "sends a signal to the process that started it"
    for text in tree.texts:
        if _INSIDE.match(str(text.value)):
            yield text, "names the inside of a process"
        elif _JUDGE.search(str(text.value)) and not _is_docstring(tree, text):
            yield text, "names a module of the judge"
    own = {t.path.partition("/")[0].removesuffix(".py") for t in script.trees}
    for node in tree.importing:
        modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        if any(m.partition(".")[0] == "grader" for m in modules) and "grader" not in own:
            yield node, "imports a module of the judge"
    stores = (d.node for clock in _CLOCKS for d in tree.attributes.get(clock.rpartition(".")[2], ()))
    for store in (s for s in dict.fromkeys(stores) if isinstance(s, ast.Assign)):
        for target in store.targets:
            if isinstance(target, ast.Attribute) and script.names.qualified(target) in _CLOCKS:
                yield store, "replaces a function of the standard library"


def _climbs(tree: Tree, call: ast.Call) -> bool:
    """Whether more than the caller's name or line is taken; loggers ask for those."""
    above: ast.AST | None = tree.parent.get(call)
    while isinstance(above, ast.Attribute | ast.Subscript):
        if isinstance(above, ast.Attribute) and above.attr in ("f_locals", "f_globals"):
            return True
        above = tree.parent.get(above)
    function = tree.function(call)
    inside = ast.walk(function) if function is not None else ast.walk(tree.root)
    looped = any(isinstance(n, ast.While) for n in ast.walk(function or tree.root))
    reads = {n.attr for n in inside if isinstance(n, ast.Attribute)} & _UPWARDS
    return bool(reads & {"f_locals", "f_globals"}) or ("f_back" in reads and looped)


def _foreign_descriptor(script: Script, call: ast.Call) -> bool:
    given = call.args[1] if script.names.qualified(call.func) == "os.dup2" and len(call.args) > 1 else None
    given = given or (call.args[0] if call.args else None)
    number = script.values.constant(given)
    if isinstance(number, int) and not isinstance(number, bool):
        return number > 2
    tree = script.names.tree(call)
    return (
        isinstance(given, ast.Name)
        and any(
            isinstance(d.node, ast.For) and _is_range(d.node.iter)
            for d in script.names.lookup(given.id, call)
        )
        and tree.function(call) is tree.function(given)
    )


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _is_parent(script: Script, node: ast.expr) -> bool:
    return any(
        isinstance(o, ast.Call) and script.names.qualified(o.func) == "os.getppid"
        for o in script.values.origins(node)
    )


def _is_docstring(tree: Tree, node: ast.Constant) -> bool:
    return isinstance(tree.parent.get(node), ast.Expr)


def check_trace(seen: Seen) -> Look:
    """Gather what the script's own code reached for while it ran."""
    told = [(r.rank, e) for r in seen.trace.ranks for e in r.events(events.REACH)]
    if told:
        sites = dict.fromkeys(e.site for _, e in told)
        what = dict.fromkeys(str(e.fields.get("what", "")) for _, e in told)
        who = sorted({rank for rank, _ in told})
        return flagged(
            Hit(
                message=f"{ranks(who)} reached {count(len(told), 'time')} for what a training script has no use for "
                f"({', '.join(what)}).",
                hint="It decides nothing by itself; ask the learner what it is for.",
                where=places(sites),
                ranks=tuple(who),
                details={
                    "holds": False,
                    "reaches": [
                        f"rank {rank}: {e.fields.get('what', '')} {e.fields.get('target', '')}".strip()
                        for rank, e in told[:16]
                    ],
                },
            )
        )
    if not any(r.start for r in seen.trace.ranks):
        return unseen("The ranks told nothing.")
    return verified("The script's own code kept to its own process.")
