"""No trace, however odd, makes a rule fail: a learner's process may write anything that is well typed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.checks.diagnosis import diagnose
from grader.checks.policy import apply_rules
from grader.checks.rule import load_rules
from grader.model.call_site import Site
from grader.model.checkpoint_save import Save
from grader.model.drawn_data import Batch, Feed, Loader, Pass
from grader.model.evaluation import ArtifactProblem, Evaluation, ReportedMetrics
from grader.model.file_write import FileWrite
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.run import Ending, Failure, Frame, Waiting, WrittenFile
from grader.model.trace import Collective, Event, Final, Group, Params, RankTrace, Start, Step, Trace, Wrap

small = st.integers(-2, 40)
maybe = st.one_of(st.none(), small)
times = st.floats(allow_nan=True, allow_infinity=True)
words = st.sampled_from(
    ["", "train", "model.pt", "metrics.json", "cuda:0", "cpu", "ddp", "barrier", "all_reduce", "\x00", "é"]
)
flags = st.sampled_from([None, True, False])
sites = st.one_of(st.none(), st.builds(Site, st.sampled_from(["train.py", "", "other.py"]), small, words))
sums = st.lists(st.one_of(st.none(), times), max_size=4).map(tuple)
names = st.lists(words, max_size=4).map(tuple)
kinds = st.sampled_from(
    ["init", "destroy", "ddp", "fsdp", "data_parallel", "open", "rename", "torch.save", "dcp", ""]
)
fields = st.dictionaries(
    st.sampled_from(
        [
            "op",
            "by",
            "target",
            "dataset",
            "root",
            "guarded",
            "started",
            "group_destroyed",
            "wrap",
            "type",
            "message",
            "frames",
            "through_wrapper",
        ]
    ),
    st.one_of(
        st.none(),
        st.booleans(),
        words,
        small,
        st.lists(small, max_size=2),
        st.sampled_from(["begin", "spawn", "fork"]),
    ),
    max_size=4,
)
others = st.builds(
    Event,
    st.sampled_from(
        ["bypass", "download", "process", "evaluation", "end", "unsupported", "no_sync", "exception"]
    ),
    times,
    sites,
    fields,
)


def few(strategy: Any, size: int = 6) -> Any:
    return st.lists(strategy, max_size=size).map(tuple)


def rank_traces(rank: int) -> Any:
    # Times that are out of order, loaders that nobody built, passes without batches and the other way round.
    return st.builds(
        RankTrace,
        rank=st.just(rank),
        start=st.one_of(st.none(), st.builds(Start, words, words, small, small, small, small, small)),
        ended=st.booleans(),
        groups=few(st.builds(Group, kinds, words, small, small, st.one_of(st.none(), times), maybe, sites, times)),
        collectives=few(st.builds(Collective, words, sites, small, maybe, words, times)),
        wraps=few(
            st.builds(
                Wrap, small, kinds, sites, words, small, small, small, small, small, small, names, st.none(),
                flags, flags, times,
            )
        ),
        loaders=few(
            st.builds(
                Loader, st.integers(0, 2), sites, words, small, maybe, maybe,
                st.sampled_from([None, "train", "validation"]),
                st.sampled_from(["", "RandomSampler", "DistributedSampler"]), maybe, maybe, maybe, flags, maybe,
                st.booleans(), small, st.booleans(), st.booleans(), times,
                st.sampled_from([None, "a", "b"]), st.booleans(),
            )
        ),
        passes=few(
            st.builds(
                Pass, st.integers(0, 2), st.integers(0, 2), maybe, sites, times, st.one_of(st.none(), times), flags
            )
        ),
        batches=few(
            st.builds(
                Batch, st.integers(0, 2), st.integers(0, 2), small, small,
                st.one_of(st.none(), few(st.integers(-2, 20), 12)), times, small, times,
            ),
            12,
        ),
        feeds=few(st.builds(Feed, small, names, small, times)),
        steps=few(
            st.builds(
                Step, small, small, words, few(times, 2), small, times, times, st.one_of(st.none(), times),
                st.one_of(st.none(), times), st.one_of(st.none(), sums), names, flags, maybe, maybe, sites, times,
            ),
            12,
        ),
        params=few(st.builds(Params, small, names, sums, times)),
        finals=few(st.builds(Final, names, sums, st.booleans(), st.booleans())),
        saves=few(st.builds(Save, words, st.booleans(), sites, kinds, words, small, sums, times)),
        files=few(st.builds(FileWrite, kinds, words, st.booleans(), sites, times)),
        others=few(others, 10),
        problems=few(words, 2),
        suspicions=few(words, 2),
        num_lines=small,
        last_t=times,
    )  # fmt: skip


frames = st.builds(Frame, st.sampled_from(["train.py", "torch/x.py"]), small, words, st.booleans())
waits = st.one_of(st.none(), st.builds(Waiting, few(frames, 3), words, st.one_of(st.none(), frames)))
failures = st.one_of(
    st.none(),
    st.builds(
        Failure,
        words,
        st.sampled_from(
            ["", "\n", "op.preamble.length <= op.nbytes", "Connection closed by peer", "CUDA out of memory"]
        ),
        few(frames, 2),
    ),
)
evaluations = st.one_of(
    st.none(),
    st.builds(
        Evaluation,
        problem=st.one_of(st.none(), st.sampled_from(ArtifactProblem)),
        artifact=words,
        prefix=words,
        validation=st.dictionaries(st.sampled_from(["accuracy", "loss"]), st.floats(0, 1), max_size=2),
        num_validation=st.integers(0, 50),
        sums=few(st.floats(allow_nan=True)),
        reported=st.one_of(
            st.none(),
            st.builds(
                ReportedMetrics,
                few(st.dictionaries(st.just("val_accuracy"), st.floats(-2, 200), max_size=1), 3),
            ),
        ),
    ),
)
SCRIPTS = (
    "",
    "print(1)\n",
    "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n",
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), world_size=st.integers(1, 3))
def test_no_rule_fails(tell: Any, task: Any, data: st.DataObject, world_size: int) -> None:
    story = tell.Story(world_size)
    story.text = data.draw(st.sampled_from(SCRIPTS))
    seen = story.evidence()
    trace = Trace(tuple(data.draw(rank_traces(r)) for r in range(world_size)))
    records = tuple(
        replace(
            r,
            waiting=data.draw(waits),
            failure=data.draw(failures),
            exit_code=data.draw(st.sampled_from([None, 0, 1, 2, -6, -9, -15])),
            killed_by_judge=data.draw(st.booleans()),
            stdout_lines=data.draw(st.integers(0, 9)),
        )
        for r in seen.record.ranks
    )
    outputs = data.draw(few(st.builds(WrittenFile, words, st.integers(0, 9), times), 2))
    record = replace(
        seen.record,
        ranks=records,
        ending=data.draw(st.sampled_from(Ending)),
        outputs=outputs,
        loopback_bytes=data.draw(st.one_of(st.none(), st.integers(0, 10**6))),
    )
    num_train = data.draw(st.one_of(st.none(), st.integers(0, 40)))
    seen = replace(
        seen,
        trace=trace,
        record=record,
        facts=replace(
            seen.facts,
            profile=data.draw(st.sampled_from(["cpu", "gpu"])),
            num_train=num_train or 0,
            num_validation=num_train or 0,
        ),
        scored=num_train is not None,
        evaluation=data.draw(evaluations),
        logs=data.draw(st.sampled_from([(), (("a\nb\nc\n", ""),) * world_size])),
    )
    seen.ledger.coverage()
    findings, checks = apply_rules(seen, task)
    assert [c.code for c in checks] == [r.code for r in load_rules()]
    assert {f.code for f in findings} <= {c.code for c in checks}
    assert all(f.message for f in findings)
    diagnosis, failed = diagnose(seen)
    assert not failed
    assert (diagnosis is None) or (diagnosis.title and diagnosis.explanation.endswith("."))
    # A finding that counts belongs to a check that says so.
    counted = {f.code for f in findings if f.severity in (Severity.ERROR, Severity.WARNING)}
    contradicted = {c.code for c in checks if c.state is State.CONTRADICTED}
    assert counted <= contradicted | {"DEV001"}
