"""Outcomes of `grader verify`, kept so that an unchanged submission need not be judged again.

An outcome is found again only where everything that decides it is the same, and only kept promises are stored: what
broke once is always looked at again. A damaged entry is no entry. Nothing is judged here.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from grader.evaluate.calibration import node_class
from grader.model.verify_case import VerifyCase
from grader.settings import settings

SCHEMA = 1
_PACKAGE = Path(__file__).resolve().parent
# They print, draw, describe and serve; nothing that judges imports them.
_DECIDE_NOTHING = {
    "__main__.py",
    "cli",
    "client",
    "demo.py",
    "doctor.py",
    "queue",
    "rehearsal",
    "report",
    "serve",
    "store",
    "web",
    "worker",
    "workflows",
}


def world() -> dict[str, str]:
    """What is the same for all submissions on this machine: the judge's own code, the packages, the node class."""
    return {
        "code": _code_version(),
        "packages": _packages_version(),
        "python": platform.python_version(),
        "node_class": node_class(),
    }


def recall(facts: Mapping[str, object]) -> VerifyCase | None:
    """The outcome that was kept for these facts, marked as cached; None where there is none, or it is damaged."""
    try:
        document = json.loads(_path(facts).read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA or document["facts"] != _plain(facts):
            return None
        case = _case(document["case"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return replace(case, cached=True, seconds=0.0)


def remember(facts: Mapping[str, object], case: VerifyCase) -> None:
    """Keep the outcome of a submission that kept its promise; others, and a disk that refuses, are passed over."""
    if not case.ok:
        return
    path = _path(facts)
    text = json.dumps({"schema": SCHEMA, "facts": _plain(facts), "case": asdict(case)}, indent=2) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, half = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(half).replace(path)
        finally:
            Path(half).unlink(missing_ok=True)
    except OSError:
        return


def _case(found: dict[str, Any]) -> VerifyCase:
    """The stored case.

    Raises:
        TypeError, KeyError: a field is missing, unknown or of another type.
    """
    if set(found) != {field.name for field in fields(VerifyCase)}:
        raise KeyError("not the fields of a case")
    fitting: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()}
    case = VerifyCase(**fitting)
    texts = (case.task, case.submission, case.expected_verdict, case.verdict, case.message)
    codes = (case.expected_codes, case.codes)
    if not all(isinstance(one, tuple) for one in codes) or not all(
        isinstance(text, str) for text in (*texts, *codes[0], *codes[1])
    ):
        raise TypeError("not the types of a case")
    if case.ok is not True:
        raise TypeError("not a kept promise")
    return case


def _plain(facts: Mapping[str, object]) -> dict[str, str]:
    return {name: str(facts[name]) for name in sorted(facts)}


def _path(facts: Mapping[str, object]) -> Path:
    key = hashlib.sha256(json.dumps(_plain(facts)).encode()).hexdigest()
    return settings().state_dir / "outcomes" / f"{key}.json"


@cache
def _code_version() -> str:
    """SHA-256 over the files of this package that take part in judging."""
    sha = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        parts = path.relative_to(_PACKAGE).parts
        if parts[0] in _DECIDE_NOTHING or "__pycache__" in parts or not path.is_file():
            continue
        name, content = "/".join(parts).encode(), path.read_bytes()
        sha.update(b"%d %d\n" % (len(name), len(content)) + name + content)
    return sha.hexdigest()


@cache
def _packages_version() -> str:
    """SHA-256 over names and versions of all installed packages: a submission may import any of them."""
    found = sorted({f"{found.name}=={found.version}" for found in metadata.distributions()})
    return hashlib.sha256("\n".join(found).encode()).hexdigest()
