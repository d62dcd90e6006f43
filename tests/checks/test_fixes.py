"""Advice as edits: every fix of every flagged fixture mends what it says, and nothing else speaks up because of it."""

from __future__ import annotations

import ast
from collections import Counter
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import pytest

from grader.catalog.submissions.scripts import NamedScript
from grader.checks.lint import LintedScript, lint
from grader.checks.mended_script import MendedScript, mend
from grader.checks.rule import load_rules
from grader.checks.source.script import parse
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.fix import Edit, Fix, mended
from grader.model.submission import ENTRY_POINT, SourceFile, Submission

FIXTURES = Path(__file__).parent / "fixtures"
WITH_FIXES = {
    "DATA001", "DATA002", "DATA005", "DATA007", "DATA009", "DEV001", "DEV003", "DEV004", "DIST002", "DIST003",
    "DIST004", "DIST005", "DIST007", "DIST010", "DIST011", "DIST013", "DIST014", "EVAL001", "EVAL005",
    "EVAL006", "EVAL008", "EVAL015", "GRAD001", "GRAD002", "GRAD005", "GRAD006", "GRAD007", "GRAD008", "GRAD011",
    "GRAD012",
    "GRAD013", "GRAD015", "GRAD017", "IO001", "IO002", "IO003", "IO004", "IO005", "IO008", "IO010",
    "OPT008", "PERF001",
}  # fmt: skip
"""Rules that write their advice themselves wherever it is certain; all others leave a decision to the learner."""
GRAVE = (Severity.ERROR, Severity.WARNING)


def submission(text: str) -> Submission:
    return Submission("mine", (SourceFile(ENTRY_POINT, text),))


@cache
def found(path: Path) -> tuple[Finding, ...]:
    return lint(submission(path.read_text(encoding="utf-8")))


@cache
def fixable(code: str) -> tuple[Path, ...]:
    """The rule's flagged fixtures with a fix among its own findings."""
    paths = sorted((FIXTURES / code).glob("flagged_*.py"))
    return tuple(path for path in paths if own(path))


def own(path: Path) -> list[Finding]:
    """Findings of the fixture's own rule that come with a fix."""
    return [one for one in found(path) if one.code == path.parent.name and one.fix is not None]


def told(findings: tuple[Finding, ...]) -> Counter[str]:
    return Counter(finding.code for finding in findings if finding.severity in GRAVE)


def mend_all(text: str) -> MendedScript:
    def linted(source: NamedScript) -> LintedScript:
        return LintedScript(source, lint(source.submission))

    return mend(linted(NamedScript(ENTRY_POINT, submission(text))), linted)


def old_line(before: str, after: str, number: int) -> int | None:
    """The line that an unchanged line of the later text was."""
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for block in matcher.get_matching_blocks():
        if block.b < number <= block.b + block.size:
            return block.a + number - block.b
    return None


@pytest.mark.parametrize("code", sorted(WITH_FIXES))
def test_rules_with_fixes_show_three(code: str) -> None:
    assert len(fixable(code)) >= 3


def test_all_other_rules_have_none() -> None:
    others = [rule for rule in load_rules() if rule.check_source and rule.code not in WITH_FIXES]
    for rule in others:
        for path in (FIXTURES / rule.code).glob("flagged_*.py"):
            script = parse(submission(path.read_text(encoding="utf-8")))
            assert not [hit for hit in rule.source_hits(script) if hit.fix is not None], path


@pytest.mark.parametrize("code", sorted(WITH_FIXES))
def test_a_fix_takes_its_finding_away_and_brings_no_other(code: str) -> None:
    for path in fixable(code):
        before = path.read_text(encoding="utf-8")
        for finding in own(path):
            assert finding.fix is not None
            assert finding.fix.summary.endswith("."), path
            assert finding.hint, f"{path}: a fix stands beside its hint, never in its place"
            after = mended(submission(before), [finding.fix]).text(ENTRY_POINT) or ""
            compile(after, str(path), "exec")
            assert after != before, path
            later = lint(submission(after))
            again = [one for one in later if one.code == code]
            assert len(again) < len([one for one in found(path) if one.code == code]), path
            lines = {old_line(before, after, one.location.line) for one in again if one.location}
            assert not {place.line for place in finding.where} & lines, path
            assert not told(later) - told(found(path)), f"{path}: it brought something about"


@pytest.mark.parametrize("code", sorted(WITH_FIXES))
def test_all_fixes_together_come_to_rest(code: str) -> None:
    for path in fixable(code):
        first = mend_all(path.read_text(encoding="utf-8"))
        text = first.linted.source.submission.text(ENTRY_POINT) or ""
        compile(text, str(path), "exec")
        assert first.mended, path
        assert not [one for one in first.linted.findings if one.fix is not None], path
        second = mend_all(text)
        assert (second.mended, second.changed) == ((), ()), path


@pytest.mark.parametrize("path", sorted((FIXTURES / "styles").glob("*.py")), ids=lambda p: p.stem)
def test_honest_scripts_stay_valid_when_advice_is_taken(path: Path) -> None:
    text = mend_all(path.read_text(encoding="utf-8")).linted.source.submission.text(ENTRY_POINT) or ""
    compile(text, str(path), "exec")
    assert not told(lint(submission(text)))


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_line_ends_and_the_missing_last_one_stay(line_end: str) -> None:
    path = FIXTURES / "DATA001" / "flagged_plain_shuffle.py"
    plain = path.read_text(encoding="utf-8").rstrip("\n")
    after = mend_all(plain.replace("\n", line_end)).linted.source.submission.text(ENTRY_POINT) or ""
    assert after == (mend_all(plain).linted.source.submission.text(ENTRY_POINT) or "").replace("\n", line_end)
    assert not after.endswith(line_end)
    assert "set_epoch" in after


def test_columns_are_bytes_so_that_other_letters_before_an_edit_do_no_harm() -> None:
    text = (FIXTURES / "DATA009" / "flagged_keywords.py").read_text(encoding="utf-8")
    text = text.replace("loader = DataLoader(", 'größe = "äß𝄞"; loader = DataLoader(')
    after = mend_all(text).linted.source.submission.text(ENTRY_POINT) or ""
    assert 'größe = "äß𝄞"; loader = DataLoader(train_set, batch_size=32, sampler=sampler)' in after


def test_texts_over_several_lines_keep_what_is_in_them() -> None:
    path = FIXTURES / "IO002" / "flagged_bar_and_lines.py"
    after = mend_all(path.read_text(encoding="utf-8")).linted.source.submission.text(ENTRY_POINT) or ""
    texts = [n.value for n in ast.walk(ast.parse(after)) if isinstance(n, ast.Constant)]
    assert "loss\n" in texts
    assert after.count("if dist.get_rank() == 0:") == 1, "neighbours share one test"


def test_an_edit_that_breaks_the_syntax_or_lies_outside_is_not_made() -> None:
    source = NamedScript(ENTRY_POINT, submission("x = 1\ny = 2\n"))
    broken = Fix("Breaks it.", (Edit(ENTRY_POINT, 1, 1, 1, 2, "x = ("),))
    outside = Fix("Lies outside.", (Edit(ENTRY_POINT, 9, 1, 9, 1, "z = 3\n"),))
    right = Fix("Is right.", (Edit(ENTRY_POINT, 2, 5, 2, 6, "3"),))
    first, second, third = (
        Finding(code, Severity.ERROR, EvidenceKind.SOURCE, "m", "h", fix=fix)
        for code, fix in (("A001", broken), ("A002", outside), ("A003", right))
    )

    def again(source: NamedScript) -> LintedScript:
        return LintedScript(source, (first, second))

    done = mend(LintedScript(source, (first, second, third)), again)
    assert done.mended == (third,)
    assert done.linted.source.submission.text(ENTRY_POINT) == "x = 1\ny = 3\n"


def test_fixes_that_overlap_are_made_one_after_the_other_and_a_useless_one_is_taken_back() -> None:
    one = Edit(ENTRY_POINT, 1, 1, 1, 6, "a = 1")
    assert one.overlaps(Edit(ENTRY_POINT, 1, 5, 1, 6, "2"))
    assert one.overlaps(Edit(ENTRY_POINT, 1, 1, 1, 1, "b = 0\n"))
    assert not one.overlaps(Edit(ENTRY_POINT, 1, 6, 1, 6, "0"))
    assert not one.overlaps(Edit("other.py", 1, 1, 1, 6, "a = 1"))
    with pytest.raises(ValueError, match="overlap"):
        mended(submission("x = 1\n"), [Fix("", (one,)), Fix("", (Edit(ENTRY_POINT, 1, 5, 1, 6, "2"),))])
    with pytest.raises(ValueError, match="no file"):
        mended(submission("x = 1\n"), [Fix("", (Edit("other.py", 1, 1, 1, 1, ""),))])

    useless = Finding("A001", Severity.ERROR, EvidenceKind.SOURCE, "m", "h", fix=Fix("Nothing.", (one,)))

    def again(source: NamedScript) -> LintedScript:
        return LintedScript(source, (useless,))

    done = mend(LintedScript(NamedScript(ENTRY_POINT, submission("x = 1\n")), (useless,)), again)
    assert (done.mended, done.changed) == ((), ())


HEAD = """import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

"""
JOINED = (
    HEAD
    + """dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
"""
)
LOOP = """for epoch in range(3):
    for x, y in loader:
        torch.nn.functional.cross_entropy(model(x), y).backward()
"""
END = "dist.destroy_process_group()\n"
UNDECIDED = {
    "DATA002 a sampler that may not be there": JOINED
    + "sampler = DistributedSampler(train_set) if dist.get_world_size() > 1 else None\n"
    + "loader = DataLoader(train_set, 8, sampler=sampler)\n" + LOOP + END,
    "DATA002 a loop that counts nothing": JOINED
    + "sampler = DistributedSampler(train_set)\nloader = DataLoader(train_set, 8, sampler=sampler)\n"
    + LOOP.replace("for epoch in range(3)", "while time.time() < end") + END,
    "DATA001 the samples are made in place": JOINED
    + "loader = DataLoader(build(), 8, shuffle=True)\n" + LOOP + END,
    "DATA001 the loader comes before the group": HEAD
    + "loader = DataLoader(train_set, 8, shuffle=True)\n" + JOINED.removeprefix(HEAD) + LOOP + END,
    "IO001 a value that is kept": JOINED + LOOP.replace("loader", "batches")
    + "file = open('log.csv', 'w')\nfile.write('x')\n" + END,
    "IO001 a save with others on its line": JOINED + LOOP.replace("loader", "batches")
    + "x = 1; torch.save(model.module.state_dict(), 'm.pt')\n" + END,
    "IO001 after the group's end": JOINED + LOOP.replace("loader", "batches") + END
    + "torch.save(model.module.state_dict(), 'm.pt')\n",
    "IO001 the group may not be there": HEAD
    + "if os.environ.get('MANY'):\n    dist.init_process_group('gloo')\n"
    + "model = DistributedDataParallel(torch.nn.Linear(4, 2))\n" + LOOP.replace("loader", "batches")
    + "torch.save(model.module.state_dict(), 'm.pt')\n",
    "IO002 what is said takes all ranks": JOINED
    + "def mean(value):\n    dist.all_reduce(value)\n    return value\n" + LOOP.replace("loader", "batches")
    + "print(mean(x))\n" + END,
    "IO002 what is said runs the model": JOINED + LOOP.replace("loader", "batches") + "print(model(x))\n" + END,
    "IO002 before the group is joined": HEAD + "print('hello')\n" + JOINED.removeprefix(HEAD)
    + LOOP.replace("loader", "batches") + END,
    "IO005 the wrapper reads it again": JOINED + LOOP.replace("loader", "batches")
    + "if dist.get_rank() == 0:\n    torch.save(model.state_dict(), 'm.pt')\n"
    + "dist.barrier()\nmodel.load_state_dict(torch.load('m.pt', map_location='cpu'))\n" + END,
    "DIST002 a way out in the middle": HEAD
    + "def main():\n    dist.init_process_group('gloo')\n    if os.environ.get('DRY'):\n        return\n"
    + "    print(dist.get_rank())\nmain()\n",
    "DIST003 between what one rank does": JOINED + LOOP.replace("loader", "batches")
    + "if dist.get_rank() == 0:\n    first = 1\n    dist.barrier()\n    second = 2\n" + END,
    "DIST004 the script starts its ranks itself": HEAD + "import torch.multiprocessing as mp\n"
    + "def work(rank, world):\n    dist.init_process_group('gloo', rank=rank, world_size=4)\n"
    + "    DistributedDataParallel(torch.nn.Linear(4, 2))\n    dist.destroy_process_group()\n"
    + "if __name__ == '__main__':\n    mp.spawn(work, args=(2,), nprocs=2)\n",
    "DEV001 the script starts its ranks itself": HEAD + "import torch.multiprocessing as mp\n"
    + "def work(rank, world):\n    dist.init_process_group('nccl', rank=rank, world_size=world)\n"
    + "    model = DistributedDataParallel(torch.nn.Linear(4, 2).to('cuda:0'))\n"
    + "    dist.destroy_process_group()\n"
    + "if __name__ == '__main__':\n    mp.spawn(work, args=(2,), nprocs=2)\n",
    "PERF001 something is measured by it": JOINED + LOOP.replace("loader", "batches").replace("batches", "loader")
    .replace("for epoch", "loader = DataLoader(train_set, 8, sampler=DistributedSampler(train_set))\nfor epoch")
    + "        torch.cuda.synchronize()\n        print(dist.get_rank(), time.time())\n" + END,
    "GRAD008 an average that some steps go without": JOINED.replace("DistributedDataParallel(torch.nn.Linear(4, 2))",
    "torch.nn.Linear(4, 2)") + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    + "def mean(model):\n    for p in model.parameters():\n        dist.all_reduce(p.grad)\n"
    + "        p.grad /= dist.get_world_size()\nfor step, (x, y) in enumerate(batches):\n"
    + "    optimizer.zero_grad(set_to_none=False)\n    if step:\n        mean(model)\n"
    + "    torch.nn.functional.cross_entropy(model(x), y).backward()\n    optimizer.step()\n" + END,
    "DEV003 ranks that may be on CPUs": HEAD + "dist.init_process_group('gloo')\n"
    + "model = DistributedDataParallel(torch.nn.Linear(4, 2), device_ids=[int(os.environ['LOCAL_RANK'])])\n"
    + END,
    "DEV003 moved away in the midst of training": JOINED.replace("gloo", "nccl") + LOOP.replace("loader", "batches")
    + "    if dist.get_rank() == 0:\n        torch.save(model.module.cpu().state_dict(), 'm.pt')\n" + END,
}  # fmt: skip
"""Findings whose cure depends on something that the text does not settle."""


@pytest.mark.parametrize("case", UNDECIDED)
def test_what_takes_a_decision_stays_a_hint_in_words(case: str) -> None:
    code = case.partition(" ")[0]
    hits = [one for one in lint(submission(UNDECIDED[case])) if one.code == code]
    assert hits, "the case is no case"
    assert [one.fix for one in hits] == [None] * len(hits)


def test_a_rank_that_the_script_has_by_name_is_used() -> None:
    text = JOINED.replace("model =", "rank = dist.get_rank()\nmodel =") + LOOP.replace("loader", "batches")
    text += "    if rank == 0:\n        print(epoch)\ntorch.save(model.module.state_dict(), 'm.pt')\n" + END
    after = mend_all(text).linted.source.submission.text(ENTRY_POINT) or ""
    assert "\nif rank == 0:\n    torch.save(model.module.state_dict(), 'm.pt')\n" in after


def test_tabs_stay_tabs_and_names_that_mean_something_else_are_not_taken() -> None:
    text = (JOINED + LOOP.replace("loader", "batches")).replace("    ", "\t")
    text += "\tprint(epoch)\n" + END
    after = mend_all(text).linted.source.submission.text(ENTRY_POINT) or ""
    assert "\tif dist.get_rank() == 0:\n\t\tprint(epoch)\n" in after
    taken = """from torch.distributed import destroy_process_group, init_process_group
from torch.nn import Linear
from torch.nn.parallel import DistributedDataParallel

dist = "normal"
init_process_group("gloo")
model = DistributedDataParallel(Linear(4, 2))
for x in batches:
    model(x).sum().backward()
print(dist)
destroy_process_group()
"""
    (hit,) = [one for one in lint(submission(taken)) if one.code == "IO002"]
    assert hit.fix is None, "`dist` is taken by something else"
    free = taken.replace('dist = "normal"\n', "").replace("print(dist)", "print(model)")
    after = mend_all(free).linted.source.submission.text(ENTRY_POINT) or ""
    assert "import torch.distributed as dist\n\ninit_process_group" in after
    assert "if dist.get_rank() == 0:\n    print(model)\n" in after


ALONE_TOO = """import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

LOCAL_RANK = int(os.getenv("LOCAL_RANK", -1))
device = torch.device("cuda:0")
if LOCAL_RANK != -1:
    dist.init_process_group("nccl")
model = torch.nn.Linear(4, 2).to(device)
if LOCAL_RANK != -1:
    model = DistributedDataParallel(model)
loader = DataLoader(train_set, 8, sampler=DistributedSampler(train_set) if LOCAL_RANK != -1 else None)
for x, y in loader:
    torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
correct = total = 0
with torch.no_grad():
    for x, y in DataLoader(test_set, 8, sampler=DistributedSampler(test_set) if LOCAL_RANK != -1 else None):
        correct += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
        total += len(y)
if LOCAL_RANK in (-1, 0):
    print("accuracy", correct / total)
torch.save(model.state_dict(), "last.pt")
"""


def test_what_also_runs_as_one_process_still_does() -> None:
    after = mend_all(ALONE_TOO).linted.source.submission.text(ENTRY_POINT) or ""
    assert "int(os.environ.get('LOCAL_RANK', 0))" in after, "a device of the number -1 is none"
    assert after.endswith("\nif dist.is_initialized():\n    dist.destroy_process_group()\n")
    assert "all_reduce" not in after
    assert "torch.save(model" in after.splitlines()[-3], "a rank that is -1 there is no test to put around it"
    joined = ALONE_TOO.replace("if LOCAL_RANK != -1:\n    dist.init", "dist.init")
    after = mend_all(joined).linted.source.submission.text(ENTRY_POINT) or ""
    assert "\ndist.all_reduce(counts)\n" in after
    assert "\n    torch.save(model" in after
