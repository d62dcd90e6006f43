"""A checkpoint does not fit the network.

## What happened
`load_state_dict` found names or shapes that the network does not have.

## Why
The checkpoint comes from another network, from other sizes, or from the wrapped model: a `state_dict` of the wrapper
has `module.` in front of every name.

## Mend it
Save `model.module.state_dict()` and load it into the network before wrapping it, built with the same sizes.
"""

from __future__ import annotations

import re

from grader.checks.phrases import count, listed
from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.rank_failure import shown
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(r"Error\(s\) in loading state_dict for (?P<network>\w+)")
_SIZE = re.compile(
    r"size mismatch for (?P<name>[\w.]+): copying a param with shape (?P<found>[\w.]*+\([^()]*+\)) from checkpoint, "
    r"the shape in current model is (?P<expected>[\w.]*+\([^()]*+\))\.(?:\s|$)"
)
_KEYS = re.compile(r"(?P<kind>Missing|Unexpected) key\(s\) in state_dict: (?P<names>[^\n]*)")
_NAME = re.compile(r'"([^"]+)"')
_SHAPE = re.compile(r"torch\.Size\(([^()]*+)\)")
_PREFIX = "module."


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of the keys and shapes, the `module.` prefix apart."""
    found = run.saying(_WORDS)
    if found is None or run.cause is None:
        return None
    message = run.cause.message
    keys = {m["kind"]: _NAME.findall(m["names"]) for m in _KEYS.finditer(message)}
    missing, unexpected = keys.get("Missing", []), keys.get("Unexpected", [])
    sizes = [(m["name"], _shape(m["found"]), _shape(m["expected"])) for m in _SIZE.finditer(message)]
    details = {"missing": missing[:20], "unexpected": unexpected[:20], "sizes": [list(s) for s in sizes[:20]]}
    network = found["network"]
    if unexpected and all(name.startswith(_PREFIX) for name in unexpected):
        return run.crash(
            title="The checkpoint has `module.` in front of every name",
            what=f"loaded into the bare network `{network}` what was saved from the wrapped one",
            why=(
                f"The wrapper keeps the network as its attribute `module`, so its `state_dict()` says "
                f"`{shown(unexpected[0])}` where the network says `{shown(unexpected[0].removeprefix(_PREFIX))}`"
            ),
            hint=(
                "Save `model.module.state_dict()`; or load an old file with "
                '`{name.removeprefix("module."): value for name, value in state.items()}`.'
            ),
            details=details,
        )
    if missing and not sizes and all(name.startswith(_PREFIX) for name in missing):
        return run.crash(
            title="The wrapped network was given names without `module.`",
            what="loaded into the wrapped network what was saved from the bare one",
            why="The wrapper's names all begin with `module.`, the checkpoint's do not",
            hint="Load it into the network inside: `model.module.load_state_dict(state)`, or before wrapping.",
            details=details,
        )
    return run.crash(
        title="The checkpoint does not fit the network",
        what=f"loaded a checkpoint that does not fit `{network}`: {_difference(missing, unexpected, sizes)},",
        why="Every rank loads the same file, so all of them end at this line, or wait for the one that did",
        hint=(
            "Build the network with the sizes that it was saved with, check that the file is from this network, and "
            "load it before wrapping; `strict=False` only hides what is missing."
        ),
        details=details,
    )


def _difference(missing: list[str], unexpected: list[str], sizes: list[tuple[str, str, str]]) -> str:
    parts = []
    if sizes:
        name, held, expected = sizes[0]
        more = f" (and {count(len(sizes) - 1, 'more tensor')})" if len(sizes) > 1 else ""
        parts.append(f"`{name}` is {held} in the file and {expected} in the network{more}")
    if missing:
        parts.append(f"{listed((f'`{shown(n, 60)}`' for n in missing), 3)} missing from the file")
    if unexpected:
        parts.append(f"{listed((f'`{shown(n, 60)}`' for n in unexpected), 3)} unknown to the network")
    return "; ".join(parts) or "names or shapes differ"


def _shape(text: str) -> str:
    found = _SHAPE.search(text)
    return shown(found[1] if found else text, 60)
