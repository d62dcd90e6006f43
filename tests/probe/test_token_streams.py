"""Which part of a text each rank was trained on, however the script reads it: blocks, streams, memory maps, offsets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.run.data.epoch_partition import PartitionKind, epoch_partitions
from grader.checks.run.data.sample_ledger import Ledger
from grader.model.trace import Trace
from tests.probe.warm_ranks import Ran

TEXT = """
import numpy as np
from torch.utils.data import IterableDataset
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
BLOCK, BATCH = 32, 4
path = os.path.join(OUT, f"tokens{rank}.bin")
np.random.default_rng(0).integers(0, 60, 2080 + 1).astype(np.uint16).tofile(path)
data = np.memmap(path, dtype=np.uint16, mode="r")

def rows(starts):
    x = torch.stack([torch.from_numpy(data[i : i + BLOCK].astype(np.int64)) for i in starts])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + BLOCK].astype(np.int64)) for i in starts])
    return x, y

model = DDP(nn.Sequential(nn.Embedding(60, 8), nn.Linear(8, 60)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step(x, y):
    optimizer.zero_grad()
    cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
    optimizer.step()

"""
BLOCKS = """
tokens = torch.from_numpy(data[:2080].astype(np.int64)).view(-1, BLOCK)
blocks = TensorDataset(tokens, tokens)
sampler = DistributedSampler(blocks)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in DataLoader(blocks, batch_size=BATCH, sampler=sampler):
        step(x, y)
"""
EVERY_BLOCK = BLOCKS.replace("DistributedSampler(blocks)", "torch.utils.data.RandomSampler(blocks)").replace(
    "    sampler.set_epoch(epoch)\n", ""
)
STREAM = """
class Blocks(IterableDataset):
    def __iter__(self):
        for i in range({first}, 64, {every}):
            x, y = rows([i * BLOCK])
            yield x[0], y[0]

for epoch in range({epochs}):
    for x, y in DataLoader(Blocks(), batch_size=BATCH):
        step(x, y)
"""
BY_HAND = """
def get_batch(i):
    start = {start}
    return rows([start + n * BLOCK for n in range(BATCH)])

for epoch in range({epochs}):
    for i in range(64 // (world * BATCH)):
        step(*get_batch(i))
"""
OFFSETS = "(i * world + rank) * BATCH * BLOCK"
VIEWS = """
tokens = torch.from_numpy(data.astype(np.int64))
for i in range(64 // (world * BATCH)):
    at = (i * world + rank) * BATCH * BLOCK
    step(tokens[at : at + BATCH * BLOCK].view(BATCH, BLOCK), tokens[at + 1 : at + 1 + BATCH * BLOCK].view(BATCH, BLOCK))
"""
DRAWS = """
generator = torch.Generator().manual_seed({seed})
for i in range(40):
    step(*rows(torch.randint({choices}, (BATCH,), generator=generator).tolist()))
"""
SLICES = """
class Slice(Dataset):
    def __len__(self): return 64 // world
    def __getitem__(self, i):
        x, y = rows([(i * world + rank) * BLOCK])
        return x[0], y[0]

for epoch in range(3):
    for x, y in DataLoader(Slice(), batch_size=BATCH):
        step(x, y)
"""


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        pytest.param(BLOCKS, PartitionKind.DISJOINT, id="blocks with a sampler", marks=pytest.mark.slow),
        pytest.param(EVERY_BLOCK, PartitionKind.WHOLE, id="all blocks on each rank", marks=pytest.mark.slow),
        pytest.param(
            STREAM.format(first="rank", every="world", epochs=2), PartitionKind.DISJOINT, id="stream by rank"
        ),
        pytest.param(
            STREAM.format(first="rank", every="world", epochs=1),
            PartitionKind.DISJOINT,
            id="one pass over a stream",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            STREAM.format(first="0", every="1", epochs=2),
            PartitionKind.WHOLE,
            id="whole stream on each rank",
            marks=pytest.mark.slow,
        ),
        pytest.param(BY_HAND.format(start=OFFSETS, epochs=2), PartitionKind.DISJOINT, id="offsets by rank"),
        pytest.param(
            BY_HAND.format(start=OFFSETS, epochs=1),
            PartitionKind.DISJOINT,
            id="one pass by rank",
            marks=pytest.mark.slow,
        ),
        pytest.param(VIEWS, PartitionKind.DISJOINT, id="views of one tensor", marks=pytest.mark.slow),
        pytest.param(
            BY_HAND.format(start="i * BATCH * BLOCK", epochs=2),
            PartitionKind.WHOLE,
            id="the same offsets",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            BY_HAND.format(start="i * BATCH * BLOCK + rank * BLOCK", epochs=2),
            PartitionKind.WHOLE,
            id="offset by a row, not by a batch",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            BY_HAND.format(start="i * BATCH * BLOCK + rank * 6", epochs=1),
            PartitionKind.OVERLAP,
            id="the same text cut elsewhere",
        ),
        pytest.param(
            DRAWS.format(seed="rank", choices="len(data) - BLOCK - 1"),
            PartitionKind.UNKNOWN,
            id="independent draws",
        ),
        pytest.param(
            DRAWS.format(seed="0", choices="len(data) - BLOCK - 1"), PartitionKind.WHOLE, id="the same draws"
        ),
        pytest.param(
            DRAWS.format(seed="rank", choices="64")
            .replace(").tolist()", ") * BLOCK).tolist()")
            .replace("rows(", "rows(("),
            PartitionKind.UNKNOWN,
            id="independent draws of blocks",
            marks=pytest.mark.slow,
        ),
        pytest.param(SLICES, PartitionKind.UNKNOWN, id="own slices behind the same indices"),
    ],
)
def test_how_a_text_is_divided(ranks: Callable[..., Ran], script: str, kind: PartitionKind) -> None:
    ran = ranks(TEXT + script + "\ndist.destroy_process_group()\n")
    assert ran.exit_codes == [0, 0], ran.stderr
    ledger = Ledger.of(Trace(ran.ranks))
    first = ledger.training[0]
    assert {(step.samples, step.numbers) for step in ran.ranks[0].steps} <= {
        (n, n * 32) for n in (1, 2, 3, 4)
    }
    assert {p.kind for p in epoch_partitions(ledger, first)} == {kind}
