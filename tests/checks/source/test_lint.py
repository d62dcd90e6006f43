"""The source halves alone: ordered, repeatable, and quick to start because nothing heavy is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from grader.checks.lint import lint, load_page
from grader.model.finding import EvidenceKind
from grader.model.submission import SourceFile, Submission

FIXTURES = Path(__file__).parents[1] / "fixtures"
FLAWED = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

dist.init_process_group("nccl")
model = DistributedDataParallel(torch.nn.Linear(4, 2).cuda())
loader = DataLoader(train_set, batch_size=8, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        model.module(x.cuda()).sum().backward()
    print(f"epoch {epoch}")
torch.save(model.state_dict(), "model.pt")
"""


def submission(text: str) -> Submission:
    return Submission("test", (SourceFile("train.py", text),))


def test_a_script_full_of_faults_is_told_all_of_them_gravest_first() -> None:
    findings = lint(submission(FLAWED))
    assert [f.code for f in findings] == [
        "DATA001", "DEV001", "GRAD002", "IO001", "IO002", "DIST002", "IO005",
    ]  # fmt: skip
    assert all(f.evidence is EvidenceKind.SOURCE for f in findings)
    assert [f.severity.rank for f in findings] == sorted(f.severity.rank for f in findings)


def test_the_same_script_gives_the_same_findings() -> None:
    texts = [p.read_text(encoding="utf-8") for p in sorted(FIXTURES.glob("*/flagged_*.py"))]
    assert [lint(submission(t)) for t in texts] == [lint(submission(t)) for t in texts]


def test_findings_in_helper_modules_name_their_file() -> None:
    files = (
        SourceFile(
            "saving.py", "import torch\n\ndef save(m):\n    torch.save(m.module.state_dict(), 'm.pt')\n"
        ),
        SourceFile(
            "train.py",
            FLAWED.replace('torch.save(model.state_dict(), "model.pt")', "save(model)").replace(
                "import torch\n", "import torch\nfrom saving import save\n", 1
            ),
        ),
    )
    found = [f for f in lint(Submission("test", files)) if f.code == "IO001"]
    assert [(w.path, w.line) for f in found for w in f.where] == [("saving.py", 4)]


def test_modules_that_were_not_handed_in_make_the_rules_careful() -> None:
    codes = {f.code for f in lint(submission("import our_setup\nour_setup.start()\n" + FLAWED))}
    assert not codes & {"DIST001", "DIST002", "DEV001"}, "they may do all of this"
    assert "GRAD002" in codes


def test_linting_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from grader.checks.lint import lint\n"
        "from grader.model.submission import SourceFile, Submission\n"
        f"assert lint(Submission('x', (SourceFile('train.py', {FLAWED!r}),)))\n"
        "heavy = {'torch', 'numpy', 'matplotlib', 'jinja2', 'pydantic', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "of_runs = ('grader.checks.evidence', 'grader.checks.run.', 'grader.model.run', 'grader.model.trace')\n"
        "needless = [name for name in sys.modules if name.startswith(of_runs)]\n"
        "assert not needless, needless\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_unknown_codes_have_no_page() -> None:
    assert load_page("DATA999") is None


def test_what_a_file_is_called_is_no_evidence_of_what_it_does() -> None:
    text = (FIXTURES / "GRAD001" / "flagged_in_functions.py").read_text(encoding="utf-8")
    told = {
        name: [
            (f.code, f.location.line)
            for f in lint(Submission("test", (SourceFile(name, text),)))
            if f.location
        ]
        for name in ("train.py", "train_ddp.py", "prepare_data_parallel.py")
    }
    assert told["train_ddp.py"] == told["prepare_data_parallel.py"] == told["train.py"]
    assert "GRAD001" in {code for code, _ in told["train.py"]}
