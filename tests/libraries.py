"""Every Python file of the standard library, torch, torchvision and installed frameworks, read by all rules.

    python -m tests.libraries [--every N] [--json]

No file may make a rule raise, and a file that knows nothing of torch.distributed may get nothing said about it.
It takes minutes; the suite reads a sample of the same files. Exit code 1 where either is broken.
"""

from __future__ import annotations

import argparse
import json
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from rich.progress import track

from grader.checks.lint import lint_script
from grader.checks.source.script import parse
from grader.model.submission import SourceFile, Submission

_LIBRARIES = ("torch", "torchvision", "accelerate", "lightning", "pytorch_lightning", "transformers")


def library_files() -> Iterator[tuple[str, Path]]:
    """(library, file) of everything that is installed."""
    standard = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(standard.rglob("*.py")):
        if "site-packages" not in path.parts:
            yield "standard library", path
    for name in _LIBRARIES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            continue
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            yield name, path


def read(task: tuple[str, Path]) -> tuple[str, str, str]:
    """Library, what came of it (`read`, `no text`, `spoke`, `raised`), and what to say."""
    library, path = task
    try:
        text = path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return library, "no text", ""
    try:
        script = parse(Submission("library", (SourceFile("train.py", text),)))
        findings = [f for f in lint_script(script) if f.code != "SYNTAX"]
    except Exception as error:  # noqa: BLE001  # that there is none is what is measured
        return library, "raised", f"{path}: {type(error).__name__}: {error}"
    if findings and not script.mentions_distributed:
        return library, "spoke", f"{path}: {', '.join(sorted({f.code for f in findings}))}"
    return library, "read", ""


def main() -> int:
    """Read all, print counts, and say by the exit code whether all is right."""
    parser = argparse.ArgumentParser(prog="python -m tests.libraries", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="read one file in N")
    args = parser.parse_args()
    files = list(library_files())[:: max(1, args.every)]
    counts: dict[str, dict[str, int]] = {}
    words: list[str] = []
    with ProcessPoolExecutor() as pool:
        results = pool.map(read, files, chunksize=16)
        for library, outcome, said in track(results, "reading", len(files), disable=not sys.stderr.isatty()):
            counts.setdefault(library, {"read": 0, "no text": 0, "spoke": 0, "raised": 0})[outcome] += 1
            words += [said] if said else []
    if args.json:
        print(json.dumps({"libraries": counts, "broken": words}, indent=2))
    else:
        for library, count in counts.items():
            print(f"{library:18} " + "  ".join(f"{number:5} {outcome}" for outcome, number in count.items()))
        print(*words, sep="\n")
    return 1 if words else 0


if __name__ == "__main__":
    sys.exit(main())
