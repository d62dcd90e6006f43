"""`python -m tests.cases`: scripts that are not ours, run and held against what their manifest says of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests import promised
from tests.acceptance.conftest import CHECKOUT


def cases(cwd: Path, *arguments: object) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout.splitlines()


def test_what_should_be_said_and_what_was(tmp_path: Path) -> None:
    folder, out, told = tmp_path / "flawed", tmp_path / "out", tmp_path / "told.json"
    folder.mkdir()
    text = promised.text("ddp-toy", "rejected/never_wrapped")
    for name in ("named", "elsewhere"):
        (folder / f"{name}.py").write_text(text)
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "optimizer.step()" in row)
    rows = [
        {"case": "named", "codes": ["GRAD001"], "lines": [f"train.py:{line}"]},
        {"case": "elsewhere", "codes": ["IO001"], "lines": ["train.py:1"]},
    ]
    manifest = [json.dumps({"task": "ddp-toy", "neighbours": [], **row}) for row in rows]
    (folder / "manifest.jsonl").write_text("\n".join(manifest))
    code, (named, elsewhere, sums, *_) = cases(tmp_path, folder, "--out", out, "--json", told)
    assert code == 1
    assert named.rstrip().endswith("GRAD001")
    assert elsewhere.endswith("other code, other line")
    assert sums == "2 of 2 judged; {'other code': 1, 'other line': 1}"
    replayed = cases(tmp_path, folder, "--out", out, "--replay", "--only", "^named$", "--against", told)
    assert replayed[0] == 0, "the same is said of the same evidence"
