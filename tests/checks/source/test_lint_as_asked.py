"""What a lint is asked for: chosen rules, and `# noqa` comments that silence it and never a grade."""

from __future__ import annotations

import pytest

from grader.catalog.submissions.scripts import NamedScript
from grader.checks.choice import Choice, parse_choice
from grader.checks.lint import LintedScript, lint, lint_script_as_asked
from grader.checks.rule import load_rules
from grader.checks.source.syntax.noqa import comments_by_line
from grader.errors import UsageError
from grader.model.submission import SourceFile, Submission

FLAWED = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
model = DistributedDataParallel(torch.nn.Linear(4, 2).cuda())
loader = DataLoader(
    train_set,
    batch_size=8,
    shuffle=True,
)
for epoch in range(3):
    for x, y in loader:
        model(x.cuda()).sum().backward()
torch.save(model.state_dict(), "model.pt")
dist.destroy_process_group()
"""


def asked(text: str, choice: Choice | None = None) -> LintedScript:
    source = NamedScript("train.py", Submission("test", (SourceFile("train.py", text),)))
    return lint_script_as_asked(source, choice or Choice())


def codes(text: str, choice: Choice | None = None) -> set[str]:
    return {finding.code for finding in asked(text, choice).findings}


def test_without_wishes_it_is_the_whole_lint() -> None:
    assert {"DATA001", "IO001"} <= codes(FLAWED)
    assert asked(FLAWED).findings == lint(Submission("test", (SourceFile("train.py", FLAWED),)))


SPAWNING = """\
import os
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, world):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("gloo", rank=rank, world_size=world)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(2,), nprocs=2)
"""


def test_a_script_that_starts_its_ranks_itself_is_told_of_launchers_where_one_is_asked_for() -> None:
    assert not {"DIST005", "DIST006"} & codes(SPAWNING)
    launched = lint(Submission("test", (SourceFile("train.py", SPAWNING),)))
    assert {"DIST005", "DIST006"} <= {finding.code for finding in launched}
    # It reads what a launcher sets: both ways to start it can't be meant.
    both = SPAWNING.replace("args=(2,), nprocs=2", 'args=(2,), nprocs=int(os.environ["WORLD_SIZE"])')
    assert {"DIST005", "DIST006"} <= codes(both)
    # What a worker sets for itself is nothing that it was told.
    own = SPAWNING.replace("    dist.init", '    os.environ["RANK"] = str(rank)\n    dist.init')
    assert "DIST006" not in codes(own)


@pytest.mark.parametrize(
    ("select", "ignore", "there", "gone"),
    [
        (["DATA001"], [], {"DATA001"}, {"IO001"}),
        (["DATA"], [], {"DATA001"}, {"IO001"}),
        (["data,io"], [], {"DATA001", "IO001"}, set()),
        (["IO", "DATA001 EVAL001"], [], {"DATA001", "IO001"}, set()),
        ([], ["DATA001"], {"IO001"}, {"DATA001"}),
        ([], ["IO", "DATA"], set(), {"DATA001", "IO001"}),
        (["DATA001", "IO001"], ["DATA"], {"IO001"}, {"DATA001"}),
    ],
)
def test_select_and_ignore(select: list[str], ignore: list[str], there: set[str], gone: set[str]) -> None:
    found = codes(FLAWED, parse_choice(select, ignore))
    assert there <= found
    assert not gone & found
    if select:
        named = {name for text in select for name in text.upper().replace(",", " ").split()}
        assert all(code in named or code.rstrip("0123456789") in named for code in found)


@pytest.mark.parametrize("name", ["DATA999", "DAT", "DATA01", "E501", "", " , ", "SYNTAX", "DATA-001"])
def test_an_unknown_name_is_told_with_what_there_is(name: str) -> None:
    for select, ignore, option in (([name], [], "--select"), ([], [name], "--ignore")):
        with pytest.raises(UsageError, match=option):
            parse_choice(select, ignore)
    with pytest.raises(UsageError, match="Did you mean SHARD002"):
        parse_choice(["SHARD02"], [])


def test_every_rule_and_family_can_be_named() -> None:
    for rule in load_rules():
        assert parse_choice([rule.code, rule.code.rstrip("0123456789")], []).wants(rule.code)


def test_a_file_that_does_not_parse_is_told_whatever_was_chosen() -> None:
    assert codes("def (:  # noqa\n", Choice(select=frozenset({"IO"}))) == {"SYNTAX"}


@pytest.mark.parametrize(
    ("comment", "silent"),
    [
        ("# noqa", True),
        ("# NOQA", True),
        ("#noqa", True),
        ("# noqa: DATA001", True),
        ("# noqa:DATA001", True),
        ("# noqa: data001", True),
        ("# noqa: DATA", True),
        ("# noqa: E501, DATA001", True),
        ("# noqa: IO001 DATA001", True),
        ("# type: ignore # noqa: DATA001  (the set is tiny)", True),
        ("# noqa: IO001", False),
        ("# noqa: DATA002", False),
        ("# noqa: E501", False),
        ("# noqa: DATA0", False),
        ("# noqa: -", False),
        ("# noqah", False),
        ("# not noqa", False),
        ("# here is why", False),
    ],
)
def test_a_comment_silences_what_it_names_on_its_line(comment: str, silent: bool) -> None:
    text = FLAWED.replace("loader = DataLoader(\n", f"loader = DataLoader(  {comment}\n")
    found = asked(text)
    assert ("DATA001" not in {f.code for f in found.findings}) is silent
    assert found.num_silenced == int(silent)
    assert "IO001" in {f.code for f in found.findings}


@pytest.mark.parametrize("line", ["    train_set,", "    shuffle=True,", ")"])
def test_any_line_of_the_statement_will_do(line: str) -> None:
    assert "DATA001" not in codes(FLAWED.replace(f"\n{line}\n", f"\n{line}  # noqa: DATA001\n", 1))


def test_comments_elsewhere_silence_nothing() -> None:
    for text in (
        "# noqa\n" + FLAWED,
        FLAWED.replace("loader = ", "# noqa: DATA001\nloader = "),
        FLAWED.replace("loader = ", 's = "# noqa: DATA001"; loader = '),
        FLAWED.replace(")\nfor epoch", ")\n# noqa: DATA001\nfor epoch"),
    ):
        assert "DATA001" in codes(text)


def test_a_comment_reaches_to_the_colon_of_a_block_and_not_into_it() -> None:
    text = "for x in y:  # noqa: IO\n    f(\n        x)  # noqa: DATA002\n    g(x)\n\n# noqa\nh()\n"
    assert comments_by_line(text) == {
        1: frozenset({"IO"}),
        2: frozenset({"DATA002"}),
        3: frozenset({"DATA002"}),
        6: frozenset({"*"}),
    }


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_python_counts_them(newline: str) -> None:
    text = newline.join(["x = '''", "# noqa", "'''", "f()  # noqa: IO001", ""])
    assert comments_by_line(text) == {4: frozenset({"IO001"})}


def test_linting_itself_and_so_grading_hears_no_comment() -> None:
    text = FLAWED.replace("loader = DataLoader(\n", "loader = DataLoader(  # noqa\n")
    assert "DATA001" in {f.code for f in lint(Submission("test", (SourceFile("train.py", text),)))}
