"""One attack: a file (or a folder with `train.py`) as a learner would hand it in, and what must come of it.

The expectation stands at its top, as a block of TOML in comments:

    # /// attack
    # row = "29"                 row of the list of threats; "own" for those that came later
    # aim = "Prints a score."    what it is after
    # runtimes = ["docker"]      where it runs; "process" too, where it meets something else there
    # verdicts = ["rejected"]    the only verdicts that it may come to
    # ///

and, where they say something: `endings` (of the run), `codes` (findings that must be there), `must_print`,
`must_not_print` (texts in what its ranks printed), `says` (texts in the grade or the scorer's answer), `harmless` (why
it may be accepted), `wall_s`, `memory_mib` (the attempt's own limits), `min_cpu_s` (CPU seconds that the kernel must
have counted, ranks together), `after` (another attack that runs just before), `beside` (true: an honest attempt runs at
the same time), `fill` (texts in its source that stand for what only a run can give), `open` (runtime → why what it
promises does not hold).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from grader.model.submission import SourceFile, Submission

ATTACKS = Path(__file__).parent / "attacks"
# What attacks share comes with those that ask for it; the first may ask for the second.
_HELPERS = (ATTACKS / "forging.py", ATTACKS / "honest.py")
_BEGIN, _END = "# /// attack", "# ///"


@dataclass(frozen=True)
class Attack:
    """What the block says; `files` are path → text."""

    name: str
    files: dict[str, str]
    row: str
    aim: str
    runtimes: tuple[str, ...]
    verdicts: tuple[str, ...]
    endings: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    must_print: tuple[str, ...] = ()
    must_not_print: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    harmless: str = ""
    wall_s: float = 120.0
    memory_mib: int = 2560
    min_cpu_s: float = 0.0
    after: str = ""
    beside: bool = False
    fill: tuple[str, ...] = ()
    open: dict[str, str] = field(default_factory=dict)

    def submission(self, filling: dict[str, str]) -> Submission:
        """What is handed in; `filling` has a text for each of `fill`."""
        files = []
        for path, text in sorted(self.files.items()):
            filled = text
            for name in self.fill:
                filled = filled.replace(f"@{name}@", filling[name])
            files.append(SourceFile(path, filled))
        return Submission(self.name, tuple(files))


@cache
def attacks() -> tuple[Attack, ...]:
    """All of them, by name."""
    paths = sorted(path for path in ATTACKS.iterdir() if path.name[0].isdigit())
    return tuple(_read(path) for path in paths)


def find(name: str) -> Attack:
    """One of them; raises StopIteration for a name that none has."""
    return next(attack for attack in attacks() if attack.name == name)


def _read(path: Path) -> Attack:
    if path.is_dir():
        files = {p.relative_to(path).as_posix(): p.read_text(encoding="utf-8") for p in path.rglob("*.py")}
    else:
        files = {"train.py": path.read_text(encoding="utf-8")}
    said = tomllib.loads(_block(files["train.py"], path))
    if unknown := set(said) - {f.name for f in fields(Attack)}:
        raise ValueError(f"{path.name}: nobody knows {', '.join(sorted(unknown))}")
    for helper in _HELPERS:
        if any(f"import {helper.stem}" in text for text in files.values()):
            files[helper.name] = helper.read_text(encoding="utf-8")
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in said.items()
    }
    attack = Attack(name=path.stem, files=files, **given)
    if "accepted" in attack.verdicts and not attack.harmless:
        raise ValueError(f"{path.name}: says nowhere why it may be accepted")
    return replace(attack, wall_s=float(attack.wall_s))


def _block(text: str, path: Path) -> str:
    lines = text.splitlines()
    if not lines or lines[0] != _BEGIN:
        raise ValueError(f"{path.name} does not begin with {_BEGIN!r}")
    return "\n".join(line.removeprefix("#").strip() for line in lines[1 : lines.index(_END)])
