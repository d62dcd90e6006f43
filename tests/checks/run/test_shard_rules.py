"""SHARD rules and IO009 over runs: what each rank holds of a model and saves of it, and which machine downloads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.checks.rule import load_rules
from grader.model.evaluation import ArtifactProblem, Evaluation
from grader.model.grade import State
from grader.model.run import Failure
from grader.model.task import Expected
from tests.checks.run.conftest import frame

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE
WHOLE = 16 << 20


def held(tell: Any, share: float, *, world_size: int = 2, tensors: int = 10, sharded: int = 10) -> Any:
    """All ranks hold this share of a model of 16 MiB and of twice as much optimizer state."""
    story = tell.Story(world_size)
    story.expected = Expected(sharded=True)
    for rank in story.ranks:
        rank.event(
            "held",
            num_tensors=tensors,
            num_sharded=sharded,
            param_bytes=int(WHOLE * share),
            whole_param_bytes=WHOLE,
            state_bytes=int(2 * WHOLE * share),
            whole_state_bytes=2 * WHOLE,
        )
    return story


@pytest.mark.parametrize(
    ("share", "world_size", "state"),
    [(0.5, 2, CLEAN), (0.55, 2, CLEAN), (1.0, 2, FLAGGED), (0.25, 4, CLEAN), (0.5, 4, FLAGGED)],
)
def test_each_rank_holds_its_part(tell: Any, share: float, world_size: int, state: State) -> None:
    look = held(tell, share, world_size=world_size).observation("SHARD001")
    assert look.state is state
    if state is FLAGGED:
        assert f"{share:.0%} of the model" in look.hits[0].message
        assert look.hits[0].ranks == tuple(range(world_size))


@pytest.mark.parametrize(
    ("copies", "state"), [((3, 3), FLAGGED), ((2, 3), FLAGGED), ((1, 1), CLEAN), ((3, 0), CLEAN)]
)
def test_whole_copies_beside_the_shards_divide_nothing(
    tell: Any, copies: tuple[int, ...], state: State
) -> None:
    story = held(tell, 0.5)
    for rank, often in zip(story.ranks, copies, strict=True):
        rank.fields["others"][-1].fields.update(whole_copies=often, copied_bytes=often * WHOLE)
    story.text = "main = [p.detach().full_tensor() for p in model.parameters()]\n"
    look = story.observation("SHARD001")
    assert look.state is state
    if state is FLAGGED:
        (hit,) = look.hits
        assert f"{copies[0]} copies of nearly all 10 sharded tensors, {16 * copies[0]} MiB" in hit.message
        assert "`train.py:1` puts shards together" in hit.message
        assert [place.line for place in hit.where] == [1]
        assert "`full_tensor()`" in hit.hint


@pytest.mark.parametrize("sizes", ["(world, 1)", "(world // NODES, NODES)"])
def test_sizes_of_a_mesh_the_wrong_way_round_are_named_first(tell: Any, sizes: str) -> None:
    story = held(tell, 1.0)
    story.text = f"""import os
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

NODES = int(os.environ.get("NODES", "1"))
world = dist.get_world_size()
sizes = {sizes}
mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("copy", "part"))
model = fully_shard(build(), mesh=mesh)
"""
    hit = story.observation("SHARD001").hits[0]
    assert hit.where[0].line == 8
    first, second = sizes.strip("()").split(", ")
    assert f"`({second}, {first})`" in hit.hint
    assert hit.fix is not None


def test_an_optimizer_beside_the_shards_is_not_told_to_shard_first(tell: Any) -> None:
    story = held(tell, 1.0, sharded=0)
    for _ in range(2):
        story.wrap("fsdp2")
    for rank in story.ranks:
        rank.fields["wraps"] = [replace(w, num_params=WHOLE // 8) for w in rank.fields["wraps"]]
    story.evaluation = Evaluation(None, "", artifact="model.pt")
    hit = story.observation("SHARD001").hits[0]
    assert "Ranks 0 and 1 step over whole tensors, although `train.py:8` divides the model" in hit.message
    assert hit.hint.startswith("Build the optimizer below `train.py:8`")
    assert story.observation("SHARD003").state is CLEAN


def test_whole_models_are_fine_where_nobody_asks_for_shards(tell: Any) -> None:
    story = held(tell, 1.0, sharded=0)
    story.expected = Expected()
    for code in ("SHARD001", "SHARD002", "SHARD003"):
        assert story.observation(code).state is State.NOT_REACHED, "what nobody asks for is no praise either"


def test_a_rank_that_never_stepped_twice_holds_nothing_that_could_be_judged(tell: Any) -> None:
    story = held(tell, 0.5)
    story.ranks[1].fields["others"] = []
    assert story.observation("SHARD001").state is UNSEEN


@pytest.mark.parametrize(("num_units", "state"), [(1, FLAGGED), (5, CLEAN)])
def test_a_model_is_sharded_in_several_units(tell: Any, num_units: int, state: State) -> None:
    story = held(tell, 0.5)
    for _ in range(num_units):
        story.wrap("fsdp2")
    look = story.observation("SHARD002")
    assert look.state is state
    if state is FLAGGED:
        assert look.hits[0].where[0].line == 8


def gathering(tell: Any, text: str, whole: int, *, backward: bool = True, rooted: bool = True) -> Any:
    """What is said of four blocks that are sharded at line 8, of which so many are whole at once."""
    story = held(tell, 0.5)
    story.text = text
    for number in range(5):
        story.wrap("fsdp2", line=8)
        for rank in story.ranks:
            rank.fields["wraps"][-1] = replace(rank.fields["wraps"][-1], id=number)
    for rank in story.ranks:
        fields = {"backward": backward, "units": 4, "elements": 100 * whole, "of": 400, "rooted": rooted}
        rank.event("gathered", wraps=tuple(range(whole)), **fields)
    return story.observation("SHARD002")


SHARDS = """from torch.distributed.fsdp import fully_shard

LATE = {late}
model = build()


for block in model.blocks:
    fully_shard(block{given})
fully_shard(model{root})
"""


@pytest.mark.parametrize(("whole", "state"), [(0, CLEAN), (1, CLEAN), (2, CLEAN), (3, FLAGGED), (4, FLAGGED)])
def test_most_blocks_are_not_whole_at_once(tell: Any, whole: int, state: State) -> None:
    text = SHARDS.format(late="None", given=", reshard_after_forward=False", root="")
    look = gathering(tell, text, whole)
    assert look.state is state
    if state is FLAGGED:
        assert f"{100 * whole} of the 400 parameters in 4 units are whole" in look.hits[0].message
        assert look.hits[0].ranks == (0, 1)


@pytest.mark.parametrize(
    ("late", "given", "root", "lines", "advice"),
    [
        ("None", ", reshard_after_forward=False", "", [8], "Leave it out at `train.py:8`"),
        ("None", ", reshard_after_forward=False", ", reshard_after_forward=False", [8], "Leave it out"),
        (
            "False",
            ", reshard_after_forward=LATE",
            "",
            [8, 3],
            "Let it be True, or leave it out at `train.py:8`",
        ),
        ("dict(reshard_after_forward=False)", ", **LATE", "", [3, 8], "Leave it out at `train.py:3`"),
        ("{'reshard_after_forward': not True}", ", **LATE", ", **LATE", [3, 8], "Let it be True"),
        # The outermost one may keep its own: that is no cause.
        ("None", "", ", reshard_after_forward=False", [8], "Shard the blocks with `fully_shard(block)`"),
        (
            "None",
            "",
            ")\nmodel.set_reshard_after_forward(False",
            [10, 8],
            "Leave `model.set_reshard_after_forward(",
        ),
    ],
)
def test_what_keeps_blocks_whole_is_named(
    tell: Any, late: str, given: str, root: str, lines: list[int], advice: str
) -> None:
    (hit,) = gathering(tell, SHARDS.format(late=late, given=given, root=root), 4).hits
    assert [place.line for place in hit.where] == lines
    assert hit.hint.startswith(advice)


CONFIGURED = """import dataclasses
from torch.distributed.fsdp import fully_shard
@dataclasses.dataclass(frozen=True)
class Plan:
    quick: bool = True
    def options(self):
        return {"mp_policy": None, "reshard_after_forward": not self.quick}
for block in model.blocks: fully_shard(block, **Plan().options())
fully_shard(model, **Plan().options())
"""


def test_a_switch_of_a_configuration_is_followed(tell: Any) -> None:
    (hit,) = gathering(tell, CONFIGURED, 4).hits
    assert [place.line for place in hit.where] == [7, 5, 8]


def test_blocks_that_are_gathered_ahead_of_their_pass(tell: Any) -> None:
    root = ")\nfor block in model.blocks:\n    block.unshard("
    (hit,) = gathering(tell, SHARDS.format(late="None", given="", root=root), 4, backward=False).hits
    assert "before the forward pass begins: 4 units at once" in hit.message
    assert hit.hint.startswith("Leave `block.unshard()` out.")


def test_blocks_without_a_unit_around_them_keep_what_they_gather(tell: Any) -> None:
    text = SHARDS.format(late="None", given="", root="").replace("fully_shard(model)", "")
    (hit,) = gathering(tell, text, 4, rooted=False).hits
    assert hit.hint.startswith("Call `fully_shard(model)` below the loop over the blocks.")


def test_a_trace_that_tells_nothing_of_what_is_whole_is_read_as_before(tell: Any) -> None:
    story = held(tell, 0.5)
    for _ in range(3):
        story.wrap("fsdp2")
    story.ranks[0].event("gathered", wraps=["x"], units=-1, elements=None, of=4)
    assert story.observation("SHARD002").state is CLEAN


POLICY = """import torch.nn as nn
from torch.distributed.fsdp import fully_shard


class Block(nn.Module):
    pass


UNITS = {"DecoderLayer"}
for module in model.modules():
    if type(module).__name__ in UNITS:
        fully_shard(module)
fully_shard(model)
"""


def test_a_policy_that_no_module_met(tell: Any) -> None:
    story = held(tell, 0.5)
    story.text = POLICY
    story.wrap("fsdp2", line=13, module="FSDPNet")
    (hit,) = story.observation("SHARD002").hits
    assert [place.line for place in hit.where] == [11, 9, 12, 13]
    assert "`train.py:13` shards `Net` as one unit" in hit.message
    assert "`type(module).__name__ in UNITS` at `train.py:11` (`train.py:9`) held for none" in hit.message
    assert "such as `Block`" in hit.hint


def test_a_run_that_ended_in_the_middle_of_it_is_no_model_of_one_unit(tell: Any) -> None:
    story = held(tell, 0.5)
    story.text = (
        POLICY.partition("\n\n")[0] + "\nfully_shard(model)\nfor b in model.blocks:\n    fully_shard(b)\n"
    )
    story.wrap("fsdp2", line=3, module="FSDPNet")
    assert story.observation("SHARD002").state is FLAGGED
    for rank in (0, 1):
        story.failures[rank] = Failure("TypeError", "value was None when it should not be", (frame(5),))
        story.exit_codes[rank] = 1
    assert story.observation("SHARD002").state is State.NOT_REACHED


@pytest.mark.parametrize(
    ("problem", "sharded", "state"),
    [
        (None, 10, CLEAN),
        (ArtifactProblem.MISMATCH, 10, FLAGGED),
        (ArtifactProblem.REFUSED, 10, FLAGGED),
        (ArtifactProblem.NOT_FINITE, 10, CLEAN),
        (ArtifactProblem.MISMATCH, 0, State.NOT_REACHED),  # DDP: another network, which is said elsewhere
    ],
)
def test_what_is_saved_is_the_whole(
    tell: Any, problem: ArtifactProblem | None, sharded: int, state: State
) -> None:
    story = held(tell, 0.5, sharded=sharded)
    story.evaluation = Evaluation(problem, "`embed.weight` has shape (96, 784).", artifact="model.pt")
    look = story.observation("SHARD003")
    assert look.state is state
    if state is FLAGGED:
        assert "`embed.weight` has shape (96, 784)" in look.hits[0].message


def on_machines(tell: Any, code: str, ranks: tuple[int, ...], per_machine: int) -> Any:
    """What a rule says of four ranks of which these ask for a download, so many ranks to a machine."""
    story = tell.Story(4)
    story.group()
    for rank in ranks:
        story.ranks[rank].event(
            "download", 20, dataset="FashionMNIST", root="/data", guarded=None, started=False
        )
    seen = story.evidence()
    told = tuple(
        replace(r, start=replace(r.start, local_rank=r.rank % per_machine)) for r in seen.trace.ranks
    )
    rule = next(r for r in load_rules() if r.code == code)
    return rule.observe(replace(seen, trace=replace(seen.trace, ranks=told)))


@pytest.mark.parametrize(
    ("ranks", "per_machine", "state"),
    [
        ((0,), 2, FLAGGED),
        ((0, 2), 2, CLEAN),
        ((), 2, CLEAN),
        ((0,), 4, UNSEEN),  # one machine: once is enough
    ],
)
def test_each_machine_downloads(tell: Any, ranks: tuple[int, ...], per_machine: int, state: State) -> None:
    look = on_machines(tell, "IO009", ranks, per_machine)
    assert look.state is state
    if state is FLAGGED:
        assert "machine 1 have nothing to read" in look.hits[0].message
        assert look.hits[0].ranks == (0,)


@pytest.mark.parametrize(
    ("ranks", "per_machine", "state"),
    [((0, 2), 2, CLEAN), ((0, 1), 2, FLAGGED), ((0, 2), 4, FLAGGED), ((0, 1, 2, 3), 2, FLAGGED)],
)
def test_ranks_of_one_machine_race_and_those_of_two_do_not(
    tell: Any, ranks: tuple[int, ...], per_machine: int, state: State
) -> None:
    assert on_machines(tell, "IO003", ranks, per_machine).state is state
