"""A part of PyTorch was used that this version does not have.

## What happened
A function, class or argument of torch is gone: `reduce_op=`, `group=0`, `torch.distributed.deprecated`, old FSDP
keywords.

## Why
Scripts written for PyTorch 1.x use names that have since been renamed or removed.

## Mend it
`dist.all_reduce(tensor, op=dist.ReduceOp.SUM)`; look the name up in the documentation of the installed version.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 22
_ATTRIBUTE = re.compile(r"module '(?P<of>torch[\w.]*)' has no attribute '(?P<name>\w+)'")
_IMPORT = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<of>torch[\w.]*)'")
_KEYWORD = re.compile(r"(?<![\w.])(?P<of>[\w.]++)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_INSTEAD = {
    "reduce_op": "`op=dist.ReduceOp.SUM`",
    "async": "`non_blocking=True`",
    "local_rank": "`LOCAL_RANK` from the environment",
    "verbose": "no such argument",
}


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of names that torch itself does not know."""
    found = (
        run.saying(_ATTRIBUTE, "AttributeError")
        or run.saying(_IMPORT, "ImportError")
        or (run.saying(_KEYWORD, "TypeError") if _in_library(run) else None)
    )
    if found is None:
        return None
    start = run.evidence.rank(0).start
    version = f" {start.torch}" if start is not None else ""
    instead = f"Write {_INSTEAD[found['name']]} instead. " if found["name"] in _INSTEAD else ""
    return run.crash(
        title=f"PyTorch has no `{found['name']}` here (any more)",
        what=f"used `{found['name']}` of `{found['of']}`, which PyTorch{version} does not have,",
        why="Names and arguments of torch.distributed have changed since scripts for PyTorch 1.x were written",
        hint=f"{instead}Look the call up in the documentation of the installed version.",
        details={"name": found["name"], "of": found["of"]},
    )


def _in_library(run: FailedRun) -> bool:
    """The call at the failing line is one of torch's, not of the script's own functions."""
    found = run.saying(_KEYWORD)
    if found is None:
        return False
    name = (
        found["of"].rpartition(".")[2] if not found["of"].endswith("__init__") else found["of"].split(".")[-2]
    )
    own = {d for tree in run.evidence.script.trees for d in _defined(tree.root)}
    return name not in own


def _defined(root: object) -> set[str]:
    import ast

    assert isinstance(root, ast.AST)
    return {
        n.name for n in ast.walk(root) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
