"""No Python file makes the rules raise, and files that know nothing of ranks get nothing said about them."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from grader.checks.lint import lint_script
from grader.checks.source.script import parse
from grader.model.submission import SourceFile, Submission

STDLIB = Path(sysconfig.get_paths()["stdlib"])
PACKAGES = Path(sysconfig.get_paths()["purelib"])
TORCH, TORCHVISION = PACKAGES / "torch", PACKAGES / "torchvision"


def files(root: Path, every: int, *below: str) -> list[Path]:
    """Every nth module, so that the suite stays quick; all of them have been read once by hand."""
    found = sorted(
        p for b in below or ("",) for p in (root / b).rglob("*.py") if "lib2to3/tests" not in str(p)
    )
    return [p for p in found[::every] if p.stat().st_size < 120_000]


@pytest.mark.parametrize(
    ("root", "every", "below"),
    [
        (STDLIB, 12, ("asyncio", "email", "json", "multiprocessing", "unittest", "importlib", "concurrent")),
        (TORCH, 6, ("nn/modules", "optim", "utils/data", "distributed/algorithms", "distributed/fsdp")),
        (TORCH, 3, ("nn/parallel", "distributed/elastic/agent", "distributed/optim")),
        (TORCHVISION, 6, ("datasets", "models")),
    ],
    ids=["stdlib", "torch", "torch-parallel", "torchvision"],
)
def test_no_file_makes_a_rule_raise_or_speak_without_cause(
    root: Path, every: int, below: tuple[str, ...]
) -> None:
    chosen = files(root, every, *below)
    assert len(chosen) > 3
    for path in chosen:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        script = parse(Submission(path.stem, (SourceFile("train.py", text),)))
        findings = [f for f in lint_script(script) if f.code != "SYNTAX"]
        if not script.mentions_distributed:
            assert findings == [], path
