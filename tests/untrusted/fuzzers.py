"""A fuzzer for each place that reads what a learner wrote: anything may come, and only what it declares is raised."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from grader.checks.lint import lint_script
from grader.checks.rule_failures import parted
from grader.checks.source.script import parse
from grader.checks.source.syntax.noqa import comments_by_line
from grader.errors import UsageError
from grader.evaluate.audit.told_steps import told_by
from grader.evaluate.files import reported_metrics
from grader.evaluate.files.plain_files import RefusedError
from grader.evaluate.files.results import read_results
from grader.evaluate.files.weight_files import load_tensors
from grader.launch.endings.failure import last_words
from grader.launch.endings.flight_records import read_answer, read_groups, stuck, tell, write_groups
from grader.launch.endings.stacks import frames_of, operation
from grader.launch.progress import _epoch, _loss
from grader.launch.ranks.streams import Capture, _says_only_that_it_waits, safe_text
from grader.model.submission import SourceFile, Submission
from grader.notebooks.handed_in import _scripts as notebook_scripts
from grader.report.changes.text_diff import TextDiff
from grader.report.findings.cards import group_cards
from grader.report.html.highlight import highlighted
from grader.run.output_collection import collect
from grader.run.trace_reader import read_trace
from grader.web.upload.archive import scripts_in
from grader.web.upload.refusals import UploadRefusedError
from grader.web.upload.submission import submission_of
from tests.notebooks.notebook_files import notebook

# Words that a reader looks for, so that what is drawn gets past its first look.
_PYTHON = st.lists(
    st.sampled_from(
        [
            *(
                "import torch\n",
                "import torch.distributed as dist\n",
                "from torch.nn.parallel import DistributedDataParallel",
            ),
            *(
                "dist.init_process_group('nccl')\n",
                "rank = dist.get_rank()\n",
                "model = DDP(model)\n",
                "if rank == ",
                ":\n",
            ),
            *(
                "for x in loader:\n",
                "    ",
                "  ",
                "\n",
                "loss.backward()\n",
                "optimizer.step()\n",
                "def f(",
                "):\n",
                "return ",
            ),
            *(
                "'",
                '"',
                '"""',
                "f'{",
                "}'",
                "(",
                ")",
                "[",
                "]",
                "{",
                "}",
                ",",
                ".",
                " = ",
                "==",
                "lambda: ",
                "not ",
                "# noqa: ",
            ),
            *(
                "0",
                "1",
                "²",
                "-",
                "--5",
                "9" * 20,
                "0x" + "f" * 4000,
                "'9'",
                "'²'",
                "os.environ['RANK']",
                "async ",
                "await ",
                "*",
            ),
            *(
                "\\\n",
                "\t",
                "\r",
                "\f",
                "\0",
                "\ufeff",
                "é",
                "\u2028",
                "\ud800",
                "world_size=",
                "class A(",
                "print(",
                "@",
                "if ",
                "else:\n",
            ),
            *(
                "DistributedSampler(",
                "DataLoader(",
                "dist.all_reduce(",
                "torch.save(",
                "torch.load(",
                "mp.spawn(",
                "zero_grad()",
            ),
        ]
    ),
    max_size=60,
).map("".join)
_WORDS = st.lists(
    st.sampled_from(
        [
            *(
                b"Traceback (most recent call last):\n",
                b'  File "',
                b'", line ',
                b"9" * 5000,
                b"7",
                b", in ",
                b"f\n",
                b"\n",
                b"[rank1]: ",
            ),
            *(
                b"[E",
                b"[W",
                b"[c10d]",
                b"retrying",
                b"failed to connect",
                b"frame #",
                b"1:",
                b"Exception raised from ",
                b"\x1b[",
                b"\x1b]",
            ),
            *(
                b"ValueError: ",
                b"torch.OutOfMemoryError: ",
                b"terminate called after throwing an instance of '",
                b"what():",
                b"\xff",
                b"\0",
            ),
            *(
                b"Stack (most recent call first):\n",
                b'  File "train.py", line 3 in ',
                b'"e":"step"',
                b'"loss":',
                b"1e999,",
                b'"e":"batch","t":',
            ),
        ]
    )
    | st.binary(max_size=20),
    max_size=60,
).map(b"".join)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["step", "batch", "start", "feed", "pass", "wrap", "loader", "final", "params", "save", "model"]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_FIELDS = (
    "e",
    "t",
    "n",
    "site",
    "loader",
    "pass",
    "size",
    "indices",
    "rank",
    "world_size",
    "op",
    "kind",
    "sums",
    "names",
    "schema",
    "epochs",
)
_JSON = st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=10).map(
    lambda value: json.dumps(value).encode()
) | st.binary(max_size=60)


@dataclass(frozen=True, slots=True)
class Fuzzer:
    """What is drawn, what reads it, and what that may raise."""

    drawn: st.SearchStrategy[Any]
    read: Callable[[Any], object]
    may_raise: tuple[type[Exception], ...] = ()


def _source(text: str) -> None:
    try:
        submission = submission_of("fuzzed", [("train.py", text.encode("utf-8", "surrogatepass"))])
    except UploadRefusedError:
        return
    findings, failures = parted(lint_script(parse(submission)))
    assert not failures, failures
    group_cards(findings, submission, titles={})
    comments_by_line(submission.files[0].text)


def _shown(text: str) -> None:
    lines = Submission("fuzzed", (SourceFile("train.py", text),)).lines("train.py")
    assert len(highlighted(lines)) == len(lines)
    TextDiff.between(lines, lines[::-1]).hunks(100)


def _printed(data: bytes) -> None:
    _says_only_that_it_waits(data)
    capture = Capture(-1, 64)
    capture._take(data)
    assert len(capture.text().encode()) < 64 + 200
    capture.last_line()
    words = last_words(safe_text(data))
    assert words is None or all(frame.line < 1 << 31 for frame in words.frames)


def _stack(data: bytes) -> None:
    frames = frames_of(data.decode("utf-8", "replace"))
    operation(frames, "/nowhere")


def _collectives(answer: bytes) -> None:
    record = read_answer(answer, 7)
    if record is not None:
        tell({0: record, 1: None}, {0: "rank 0", 1: "rank 1"})
        stuck(0, {0: record, 1: read_groups(write_groups(record))})


def _live(data: bytes) -> None:
    _epoch(data)
    _loss(data)


def _trace(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace")
        path.write_bytes(b"".join(b"%d.5\t%b\n" % (number, line) for number, line in enumerate(lines)))
        read_trace([path])
        told_by(0, path)


def _table(drawn: tuple[str, bytes]) -> None:
    name, content = drawn
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(content)
        read_results(Path(folder), {name: {"n": "count", "loss": "number", "who": "text"}})


@cache
def _checkpoints() -> dict[str, bytes]:
    import torch
    from safetensors.torch import save

    tensors = {"a.weight": torch.zeros(3, 2), "a.bias": torch.ones(3)}
    file = io.BytesIO()
    torch.save(tensors, file)
    return {"model.pt": file.getvalue(), "model.safetensors": save(tensors)}


def _change(content: bytearray, changes: list[tuple[int, bytes]]) -> None:
    for place, new in changes:
        at = place % len(content)
        content[at : at + len(new)] = new


def _checkpoint(drawn: tuple[str, list[tuple[int, bytes]], int]) -> None:
    name, changes, cut = drawn
    content = bytearray(_checkpoints()[name])
    _change(content, changes)
    load_tensors(bytes(content[: len(content) - cut]), name)


def _archive(drawn: tuple[list[tuple[str, bytes]], list[tuple[int, bytes]]]) -> None:
    entries, changes = drawn
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in dict(entries).items():
            archive.writestr(name or "x.py", content)
    data = bytearray(file.getvalue())
    _change(data, changes)
    submission_of("fuzzed", scripts_in(io.BytesIO(bytes(data))))


def _outputs(names: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(FileExistsError):
        source = Path(folder, "source")
        source.mkdir()
        for name in names:
            with contextlib.suppress(OSError, ValueError):
                descriptor = os.open(os.path.join(os.fsencode(source), name), os.O_WRONLY | os.O_CREAT)  # noqa: PTH118
                os.close(descriptor)
        found = collect(source, Path(folder, "target"), 1 << 10)
        json.dumps([file.path for file in found.files] + list(found.refused), ensure_ascii=False).encode()


def _notebook(drawn: tuple[list[tuple[str, str]], list[tuple[int, bytes]]]) -> None:
    cells, changes = drawn
    data = bytearray(notebook(*(text if kind == "code" else (kind, text) for kind, text in cells)))
    _change(data, changes)
    files = notebook_scripts(bytes(data), "lab.ipynb")
    given = sum(len(text.split("\n")) for _, text in cells)
    assert changes or sum(len(file.text.split("\n")) - 1 for file in files) <= given, "no line is added"


_CHANGES = st.lists(st.tuples(st.integers(0, 1 << 16), st.binary(min_size=1, max_size=8)), max_size=6)
_ENTRY = st.tuples(
    st.sampled_from(["train.py", "../x.py", "a/b.py", "/x.py", "x.ipynb", "é.py", "A.PY", "a.py/b.py"]),
    st.binary(max_size=50),
)
_MAGICS = st.lists(
    st.sampled_from(
        [
            *(
                "%%writefile ",
                "# grader: ",
                "train.py",
                "a/b.py",
                "-a ",
                "../",
                "\n",
                "\r",
                "!",
                "%time ",
                "?",
            ),
            *("x = ", "(", ")", "'", '"""', "\\", "#", "    ", "\ud800", "\0"),
        ]
    ),
    max_size=20,
).map("".join)
_CELLS = st.lists(
    st.sampled_from(
        ["n", "loss", "who", ",", "\n", "1", "-1", "1e999", "nan", '"', "9" * 400, " ", "\0", "²"]
    ),
    max_size=40,
)
_ROWS = st.lists(st.dictionaries(st.sampled_from(["n", "loss", "who", "x"]), _VALUES, max_size=4), max_size=4)

_NUMBERS: st.SearchStrategy[Any] = st.sampled_from([0, 1, 7, -1, 1 << 60, 1.5, None, True, "1", []])
_COLLECTIVE = st.lists(_NUMBERS | st.sampled_from(["all_reduce", "\n", ["train.py", 3]]), max_size=5)
_GROUP = st.fixed_dictionaries(
    {
        "group": st.sampled_from(["nccl:0", 7, "\x1b[0m"]),
        "ranks": st.lists(_NUMBERS, max_size=3),
        "enqueued": _NUMBERS,
        "first": st.none() | _COLLECTIVE | st.just([1, "all_reduce", 8, ["train.py", 3]]),
        "recent": st.lists(_COLLECTIVE | st.just([1, "all_reduce", 8]), max_size=3),
        "counts": st.dictionaries(st.sampled_from(["all_reduce", "A", "1"]), _NUMBERS, max_size=2),
    }
)
_ANSWERS = st.lists(_GROUP | _VALUES, max_size=3).map(
    lambda groups: json.dumps({"asked": 7, "groups": groups}).encode()
) | st.binary(max_size=60)

FUZZERS = {
    "source": Fuzzer(_PYTHON | st.text(max_size=200), _source),
    "shown": Fuzzer(_PYTHON | st.text(max_size=200), _shown),
    "printed": Fuzzer(_WORDS, _printed),
    "stack": Fuzzer(_WORDS, _stack),
    "collectives": Fuzzer(_ANSWERS, _collectives),
    "live": Fuzzer(_WORDS, _live),
    "trace": Fuzzer(st.lists(_JSON, max_size=8), _trace),
    "metrics": Fuzzer(_JSON, reported_metrics.parse, (ValueError,)),
    "table": Fuzzer(
        st.tuples(st.just("t.csv"), _CELLS.map(lambda cells: "".join(cells).encode()))
        | st.tuples(
            st.just("t.json"), _ROWS.map(lambda rows: json.dumps(rows).encode()) | st.binary(max_size=60)
        ),
        _table,
    ),
    "checkpoint": Fuzzer(
        st.tuples(st.sampled_from(["model.pt", "model.safetensors"]), _CHANGES, st.integers(0, 200)),
        _checkpoint,
        (RefusedError,),
    ),
    "archive": Fuzzer(st.tuples(st.lists(_ENTRY, max_size=4), _CHANGES), _archive, (UploadRefusedError,)),
    "notebook": Fuzzer(
        st.tuples(
            st.lists(st.tuples(st.sampled_from(["code", "code", "raw"]), _MAGICS), max_size=4),
            st.just([]) | _CHANGES,
        ),
        _notebook,
        (UsageError,),
    ),
    "outputs": Fuzzer(st.lists(st.binary(min_size=1, max_size=12), max_size=8), _outputs),
}
