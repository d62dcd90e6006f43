"""Ranks that are read from a variable which torchrun does not set, with a number that every process then takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.causes import stands_at
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.model.call_site import Site
from grader.model.fix import Fix

_ASKED = re.compile(r"(^|_)(RANK|WORLD_?SIZE)$")
_LAUNCHERS = re.compile(
    r"^(SLURM|OMPI|PMI|PMIX|MV2|MPI|JSM|FLUX|PALS|ALPS|AWS|SM|TORCHELASTIC|HOROVOD|NCCL)_"
)
_SET = {
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE",
    "GROUP_WORLD_SIZE", "NODE_RANK",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnsetVariable:
    """One of them: the call that reads it, its name, what stands in for it, what was meant, and the edit."""

    call: ast.Call
    name: str
    otherwise: int
    meant: str
    fix: Fix | None


def unset_variables(script: Script) -> Iterable[UnsetVariable]:
    """Those that no launcher is known to set, and that the script sets nowhere itself."""
    for call in script.calls("os.environ.get", "os.getenv"):
        name = script.ranks.environment(call)
        if name in _SET or not _ASKED.search(name) or _LAUNCHERS.match(name) or len(call.args) != 2:
            continue
        if script.values.constant(call.args[1]) not in (0, 1, "0", "1") or len(_mentions(script, name)) > 1:
            continue
        meant = "WORLD_SIZE" if "WORLD" in name else "LOCAL_RANK" if "LOCAL" in name else "RANK"
        edits = Edits(script)
        edits.replace(call.args[0], f'"{meant}"')
        number = int(script.values.constant(call.args[1]))  # type: ignore[call-overload]
        yield UnsetVariable(call, name, number, meant, edits.fix(f"Reads `{meant}`, which torchrun sets."))


def _mentions(script: Script, name: str) -> list[ast.AST]:
    return [
        n for t in script.trees for n in ast.walk(t.root) if isinstance(n, ast.Constant) and n.value == name
    ]


def told_by_variables(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What tells `init_process_group` the number of ranks and the own one: variables of another launcher."""
    for call in script.calls(INIT):
        if stands_at(script, call, site):
            for name in ("rank", "world_size"):
                given = script.argument(call, name)
                parts = script.values.closure(given) if isinstance(given, ast.expr) else ()
                yield from (p for p in parts if script.ranks.environment(p) not in ("", "RANK", "WORLD_SIZE"))
