"""A lab is worked through in its notebook, its cells run as a kernel runs them; what breaks is told by cell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader.catalog.tasks.task_folders import load_task
from tests.acceptance.conftest import CHECKOUT, Cli
from tests.notebooks.notebook_files import notebook

pytestmark = pytest.mark.slow

# What a kernel of IPython hands on to the commands of its cells.
KERNEL = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "JPY_PARENT_PID": "1"}
BROKEN = """# grader: train.py
def main():
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(nn.Linear(10, 5))
    model(torch.randn(8, 10)).mean().backward()
    if dist.get_rank() == 1:
        raise ValueError("no")
    dist.destroy_process_group()"""


def test_the_cells_of_a_lab_run_one_after_the_other(
    cli: Cli, cli_env: dict[str, str], tmp_path: Path
) -> None:
    assert cli("tasks", "ddp-toy", "--notebook").returncode == 0
    task = load_task("ddp-toy")
    solution = (task.folder / "submissions" / task.reference).read_text(encoding="utf-8")
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    (bin_dir / "grader").write_text(f'#!/bin/sh\nexec {sys.executable} -m grader "$@"\n')
    (bin_dir / "grader").chmod(0o755)
    env = {**cli_env, **KERNEL, "PYTHONPATH": str(CHECKOUT), "PATH": f"{bin_dir}:{os.environ['PATH']}"}
    said = {}
    for cell in json.loads((tmp_path / "ddp-toy.ipynb").read_text(encoding="utf-8"))["cells"]:
        first, _, rest = "".join(cell["source"]).partition("\n")
        if first.startswith("%%writefile "):
            assert rest.strip(), "the skeleton"
            (tmp_path / first.split()[1]).write_text(solution, encoding="utf-8")
        elif cell["cell_type"] == "code":
            assert first.startswith("!grader ")
            ran = subprocess.run(
                first[1:], shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240
            )
            said[first.split()[1]] = (ran.returncode, ran.stdout + ran.stderr)
    assert said["lint"][0] == 0, said["lint"][1]
    assert said["grade"][0] == 0, said["grade"][1]
    assert re.search(r"^report +.*report\.html$", said["grade"][1], re.MULTILINE)
    assert said["submit"][0] == 2
    assert "grader login" in said["submit"][1], "the service is named by who signs in"


def test_a_notebook_that_breaks_is_told_by_cell(cli: Cli, tmp_path: Path) -> None:
    imports = "# grader: train.py\n%matplotlib inline\nimport torch, torch.distributed as dist\nfrom torch import nn"
    start = "# grader: train.py\nif __name__ == '__main__':\n    main()"
    (tmp_path / "lab.ipynb").write_bytes(notebook(("markdown", "# Lab"), imports, BROKEN, "main()", start))
    out = tmp_path / "out"
    result = cli("grade", "ddp-toy", "lab.ipynb", "--out", out)
    assert result.returncode == 1
    assert "cell 3, line 7" in result.stdout
    assert not re.search(r"train\.py:\d", result.stdout)
    grade = json.loads((out / "grade.json").read_text(encoding="utf-8"))
    assert grade["diagnosis"]["where"][0]["cell"] == "cell 3, line 7"
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "cell 3, line 7 in main" in report
    assert "cell 5, line 3 in " in report
    assert not re.search(r"train\.py:\d", report)
