"""Every rank makes, clears or fills the same folder.

## What it finds
`os.makedirs` without `exist_ok=True`, deletions, unpacking, tokenising and cache files at one path, reached by all
ranks at the same time.

## Why it matters
The ranks come to the line within microseconds of each other. `if not os.path.exists(d): os.makedirs(d)` asks on both
ranks before either has made the folder, and the slower one crashes; a cache that all ranks write is read half written,
and a folder that one rank clears may hold what another has just put there. It shows now and then, and on a busy cluster
first.

## Example
```python
import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
if not os.path.exists("checkpoints"):
    os.makedirs("checkpoints")
model = DistributedDataParallel(build_model())
train(model)
dist.destroy_process_group()
```

## Use instead
```python
import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
os.makedirs("checkpoints", exist_ok=True)  # no rank minds if another was faster
model = DistributedDataParallel(build_model())
train(model)
dist.destroy_process_group()
```

## How it is seen
In the source: such calls that every rank reaches, with no test of the rank, no rank in the path, no `except` for the
loser and no barrier or lock that lets one rank go first. Caches of Hugging Face take a lock of their own and don't
count. In the run: a rank that died of `FileExistsError`, and files that several ranks opened for writing.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, listed, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.files.rank_paths import same_for_all
from grader.checks.source.ranks.rank_order import in_turn
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of, start, steps_up
from grader.model.finding import Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.endings.rank_failure import RankFailure
    from grader.model.file_write import FileWrite

SEVERITY = Severity.HINT
NEEDS = Precondition.RANKS
EXPLAINED_BY = ("DIST004",)
_KEPT_BY_IO001 = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".npz", ".npy", ".pkl", ".pickle", ".json")
_MAKERS = ("os.makedirs", "os.mkdir")
_REMOVERS = ("shutil.rmtree", "os.remove", "os.unlink", "os.rmdir", "os.removedirs")
# Function → where its target path stands among the positional arguments.
_FILLERS = {
    "shutil.unpack_archive": 1, "shutil.copytree": 1, "shutil.move": 1, "shutil.copy": 1, "shutil.copyfile": 1,
    "torchvision.datasets.utils.extract_archive": 1,
}  # fmt: skip
_UNPACKING = ("extractall",)
_EXPORTS = (
    "save_to_disk",
    "to_csv",
    "to_parquet",
    "to_pickle",
    "to_feather",
    "to_hdf",
    "train_from_iterator",
    "tofile",
)
_WORDS = (
    "prepare",
    "preprocess",
    "tokeni",
    "extract",
    "unpack",
    "build_cache",
    "makedirs",
    "mkdir",
    "setup_dir",
)
_LOSES_GRACEFULLY = {
    "FileExistsError",
    "FileNotFoundError",
    "OSError",
    "IOError",
    "Exception",
    "BaseException",
}


def check_source(script: Script) -> Iterable[Hit]:
    """Flag folders that all ranks make without `exist_ok`, and work on one path that all ranks do at once."""
    if not script.joins_group or not (script.training.trains or script.training.wraps or script.calls(INIT)):
        return
    made = _reached(script, list(_folders(script)))
    if made:
        yield Hit(
            message=f"{script.at(made[0])} makes a folder on every rank, without `exist_ok=True`: "
            f"{script.quote(made[0])}. The ranks get there together, and the one that comes second crashes with "
            "`FileExistsError`, now and then, whatever test stands before it.",
            hint="`os.makedirs(path, exist_ok=True)`, or make it on rank 0 alone and let the others wait at a barrier.",
            where=tuple(script.location(c) for c in made),
            fix=_fix(script, made),
        )
    work = list(_work(script))
    racing = _reached(script, work)
    if racing:
        yield Hit(
            message=f"{script.at(racing[0])} works on one path on every rank at the same time: "
            f"{script.quote(racing[0])}. The ranks do it N times over, and one may read or remove what another is "
            "still writing.",
            hint="Let one rank do it (`if rank == 0:`), then `dist.barrier()`, then go on on all ranks; or put the "
            "rank into the path.",
            where=tuple(script.location(c) for c in racing),
        )


def _folders(script: Script) -> Iterable[tuple[ast.Call, ast.expr | None]]:
    for name in _MAKERS:
        for call in script.calls(name):
            if name == "os.mkdir" or not _exist_ok(script, call):
                yield call, call.args[0] if call.args else None
    for call in script.called("mkdir"):
        func = call.func
        if not isinstance(func, ast.Attribute) or script.graph.targets(call):
            continue
        if script.names.qualified(func) is None and not _exist_ok(script, call):
            yield call, func.value


def _fix(script: Script, made: list[ast.Call]) -> Fix | None:
    edits = Edits(script)
    for call in made:
        if script.names.qualified(call.func) == "os.mkdir":
            edits.replace(call.func, edits.name("os.makedirs", call))
        if len(call.args) > 1:
            edits.give_up()
        edits.give(call, "exist_ok", "True")
    return edits.fix("Takes a folder that another rank has made.")


def _exist_ok(script: Script, call: ast.Call) -> bool:
    if any(k.arg is None for k in call.keywords) or len(call.args) > 2:
        return True
    given = keyword_value(call, "exist_ok")
    return given is not None and script.values.constant(given) is not False


def _work(script: Script) -> Iterable[tuple[ast.Call, ast.expr | None]]:
    for name in _REMOVERS:
        for call in script.calls(name):
            yield call, call.args[0] if call.args else None
    for name, position in _FILLERS.items():
        for call in script.calls(name):
            yield call, call.args[position] if len(call.args) > position else None
    for call in script.calls("numpy.memmap", "numpy.lib.format.open_memmap", "h5py.File"):
        mode = keyword_value(call, "mode")
        if mode is None:
            mode = next((a for a in call.args[1:3] if isinstance(script.values.constant(a), str)), None)
        if script.values.constant(mode) in ("w", "w+", "w-", "x") and call.args:
            yield call, call.args[0]
    for call in script.called(*_UNPACKING, *_EXPORTS):
        if not isinstance(call.func, ast.Attribute) or script.graph.targets(call):
            continue
        if call.func.attr in _UNPACKING:
            given = call.args[0] if call.args else keyword_value(call, "path")
            yield call, given if given is not None else ast.Constant("")
        elif call.args and not _names_a_device(script, call.args[0]):
            yield call, call.args[0]


def _names_a_device(script: Script, node: ast.expr) -> bool:
    return isinstance(script.values.constant(node), int)


def _reached(script: Script, found: list[tuple[ast.Call, ast.expr | None]]) -> list[ast.Call]:
    calls = [c for c, _ in found]
    kept = [
        call
        for call, path in found
        if (path is None or isinstance(path, ast.Constant) or same_for_all(script, path))
        and script.guards.on_every_rank(call)
        and not _excused(script, call)
        and not in_turn(script, call, calls, _WORDS)
    ]
    return sorted(kept, key=lambda c: (script.location(c).path, start(c)))


def _excused(script: Script, call: ast.Call) -> bool:
    """Under a `try` whose `except` takes the loser in, or `contextlib.suppress`."""
    tree = script.names.tree(call)
    for child, above in steps_up(tree.parent, call):
        if isinstance(above, ast.Try) and child in above.body and any(_takes_in(h) for h in above.handlers):
            return True
        if isinstance(above, ast.With) and any(name_of(i.context_expr) == "suppress" for i in above.items):
            return True
    return any(k.arg == "ignore_errors" for k in call.keywords)


def _takes_in(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(name_of(k) in _LOSES_GRACEFULLY for k in kinds)


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks that died because another had made the folder, and files that several ranks opened for writing."""
    from grader.checks.run.endings.rank_failure import rank_failures

    lost = [f for f in rank_failures(evidence) if f.type == "FileExistsError" and not f.follows]
    if lost and len(lost) < evidence.trace.world_size:
        return flagged(_crash(lost))
    shared = _shared(evidence)
    if shared:
        return flagged(_clash(shared))
    folders = [f for r in evidence.trace.ranks for f in r.files if f.op == "mkdir" and f.out]
    who = {r.rank for r in evidence.trace.ranks for f in r.files if f.op == "mkdir" and f.out}
    if not folders:
        return not_observable("No folder was made below the output folder.")
    if len(who) == 1:
        return verified(f"{ranks(who)} alone made folders.")
    return not_observable("Several ranks made folders, and none of them lost the race this time.")


def _shared(evidence: Evidence) -> dict[str, dict[int, FileWrite]]:
    """Output files, other than checkpoints and their like, that two or more ranks opened for writing or removed.

    Of each rank, what it did from the line that most of them came by: a line that rank 0 alone came by is not to blame.
    """
    found: dict[str, list[tuple[int, FileWrite]]] = {}
    for rank in evidence.trace.ranks:
        saved = {s.path for s in rank.saves}
        for file in rank.files:
            wrote = file.out and file.op in ("open", "remove") and file.site is not None
            if wrote and file.path not in saved and not file.path.endswith(_KEPT_BY_IO001):
                found.setdefault(file.path, []).append((rank.rank, file))
    shared = {path: writes for path, writes in found.items() if len({rank for rank, _ in writes}) > 1}
    return {path: _by_rank(writes) for path, writes in shared.items()}


def _by_rank(writes: list[tuple[int, FileWrite]]) -> dict[int, FileWrite]:
    came = Counter(site for site, _ in {(file.site, rank) for rank, file in writes})
    ordered = sorted(writes, key=lambda write: -came[write[1].site])
    first: dict[int, FileWrite] = {}
    for rank, file in ordered:
        first.setdefault(rank, file)
    return dict(sorted(first.items()))


def _crash(lost: list[RankFailure]) -> Hit:
    return Hit(
        message=f"{ranks(f.rank for f in lost)} died of `FileExistsError` ({lost[0].words}). "
        f"{at(lost[0].site)} makes a folder or file that another rank had made a moment before.",
        hint="`os.makedirs(path, exist_ok=True)`, or make it on rank 0 alone and let the others wait at a barrier.",
        where=places(f.site for f in lost),
        ranks=tuple(f.rank for f in lost),
        severity=Severity.ERROR,
    )


def _clash(shared: dict[str, dict[int, FileWrite]]) -> Hit:
    by = next(iter(shared.values()))
    names = listed([f"`{p}`" for p in sorted(shared)], 3)
    return Hit(
        message=f"{ranks(by)} all wrote {names}. {at(by[min(by)].site)} does so on every rank: each of them cuts off, "
        "mixes up or removes what the others have put there.",
        hint="Write it on rank 0 alone, or put the rank into its name.",
        where=places(f.site for found in shared.values() for f in found.values()),
        ranks=tuple(sorted(by)),
        details={"paths": {p: sorted(f) for p, f in list(shared.items())[:8]}},
        severity=Severity.WARNING,
    )
