"""The learner's samples: which rank was really given which ones, however the loader is built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.probe.warm_ranks import Ran

TRAIN = """
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
data = TensorDataset(torch.randn(41, 6), torch.randint(0, 3, (41,)))
{dataset}
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler, {options})
model = DDP(nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
given = []
for epoch in range(2):
    sampler.set_epoch(epoch)
    for n, (x, y) in enumerate(loader):
        given.append([row[0].item() for row in x])
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
        {after}
import json
origin = [row[0].item() for row in ({root}).tensors[0]]
print(json.dumps([[origin.index(v) for v in batch] for batch in given]))
dist.destroy_process_group()
"""


def told(ran: Ran, rank: int) -> list[list[int]]:
    return [list(batch.indices or ()) for batch in ran.ranks[rank].batches]


def printed(ran: Ran, rank: int) -> list[list[int]]:
    import json

    found: list[list[int]] = json.loads(ran.stdout[rank])
    return found


@pytest.mark.parametrize("workers", [0, 2])
def test_distributed_sampler(ranks: Callable[..., Ran], workers: int) -> None:
    ran = ranks(TRAIN.format(dataset="", options=f"num_workers={workers}", after="pass", root="data"))
    for rank in (0, 1):
        trace = ran.ranks[rank]
        assert told(ran, rank) == printed(ran, rank)
        assert [p.sampler_epoch for p in trace.passes] == [0, 1]
        assert [p.exhausted for p in trace.passes] == [True, True]
        assert [batch.step for batch in trace.batches] == list(range(len(trace.steps)))
        assert not trace.problems
        assert not trace.suspicions
        assert trace.feeds == ()
    first, second = ({i for b in told(ran, rank)[:6] for i in b} for rank in (0, 1))
    assert first | second == set(range(41))
    loader = ran.ranks[1].loaders[0]
    assert (loader.num_replicas, loader.sampler_rank, loader.root_size, loader.shuffle) == (2, 1, 41, True)


@pytest.mark.parametrize(
    "options",
    [
        "num_workers=2, persistent_workers=True",
        "num_workers=3, in_order=False",
        "num_workers=1, prefetch_factor=8",
    ],
)
def test_workers_draw_ahead_but_only_delivered_batches_count(ranks: Callable[..., Ran], options: str) -> None:
    ran = ranks(TRAIN.format(dataset="", options=options, after="if n == 1: break", root="data"))
    for rank in (0, 1):
        assert told(ran, rank) == printed(ran, rank)
        assert len(ran.ranks[rank].batches) == 4
        assert [p.exhausted for p in ran.ranks[rank].passes] == [False, False]


@pytest.mark.parametrize(
    "dataset",
    [
        "root = data; data = Subset(root, torch.arange(40, 4, -1))",
        "root = data; data = random_split(root, [30, 11], torch.Generator().manual_seed(3))[0]",
        "root = data; data = ConcatDataset([Subset(root, range(5, 20)), Subset(root, [40, 39, 2, 1, 0])])",
        "root = data; data = Subset(Subset(root, list(range(1, 41, 2))), [19, 18, 3, 2, 1, 0])",
    ],
)
def test_indices_are_traced_back_to_the_root(ranks: Callable[..., Ran], dataset: str) -> None:
    ran = ranks(TRAIN.format(dataset=dataset, options="", after="pass", root="root"), nproc=1)
    assert told(ran, 0) == printed(ran, 0)
    loader = ran.ranks[0].loaders[0]
    assert loader.resolvable
    assert (loader.dataset, loader.root_size) == ("TensorDataset", 41)


def test_two_loaders_over_one_root_share_its_id(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        data = TensorDataset(torch.randn(20, 2))
        train, held_out = random_split(data, [15, 5])
        for loader in (DataLoader(train, batch_size=5), DataLoader(held_out, batch_size=5), DataLoader(list(range(4)))):
            for _ in loader:
                pass
        """,
        nproc=1,
    )
    first, second, third = ran.ranks[0].loaders
    assert first.root == second.root != third.root
    seen = [set(batch.indices or ()) for batch in ran.ranks[0].batches if batch.loader < 2]
    assert sum(map(len, seen)) == len(set().union(*seen)) == 20


HAND_MADE = """
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x, y = torch.randn(32, 1, 6, 6), torch.randint(0, 3, (32,))
x, y = x[{shard}], y[{shard}]
model = DDP(nn.Sequential(nn.Flatten(), nn.Linear(36, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(0, len(x), 4):
    optimizer.zero_grad()
    cross_entropy(model(x[i : i + 4]), y[i : i + 4]).backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_hand_made_batches_are_told_apart_by_hashes(ranks: Callable[..., Ran]) -> None:
    ran = ranks(HAND_MADE.format(shard="rank::world"))
    shards = [[h for feed in rank.feeds for h in feed.hashes] for rank in ran.ranks]
    assert [len(shard) for shard in shards] == [16, 16]
    assert len(set(shards[0]) | set(shards[1])) == 32
    assert [feed.step for feed in ran.ranks[0].feeds] == [0, 1, 2, 3]


def test_equal_hand_made_batches_have_equal_hashes(ranks: Callable[..., Ran]) -> None:
    ran = ranks(HAND_MADE.format(shard=":"))
    assert [feed.hashes for feed in ran.ranks[0].feeds] == [feed.hashes for feed in ran.ranks[1].feeds]


def test_a_data_set_that_hides_a_subset_is_told_by_hashes_too(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        class Doubled(Dataset):
            def __init__(self, part): self.part = part
            def __len__(self): return len(self.part)
            def __getitem__(self, i): return torch.mul(self.part[i][0], 2), self.part[i][1]

        dist.init_process_group("gloo")
        torch.manual_seed(0)
        data = TensorDataset(torch.randn(40, 6), torch.randint(0, 3, (40,)))
        loader = DataLoader(Doubled(Subset(data, range(dist.get_rank(), 40, 2))), batch_size=5, shuffle=True)
        model = DDP(nn.Linear(6, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
        """
    )
    hashes = [{h for feed in rank.feeds for h in feed.hashes} for rank in ran.ranks]
    assert len(hashes[0] | hashes[1]) == 40
    loaders = [next(line for line in lines if line["e"] == "loader") for lines in ran.lines]
    assert loaders[0]["hides"]
    assert loaders[0]["digest"] != loaders[1]["digest"]


OWN_SHARES = """
class Share:
    def __init__(self, data, indices): self.data, self.indices, self.drop = data, indices, lambda x: x.clone()
    def __len__(self): return len(self.indices)
    def __getitem__(self, i):
        x, y = self.data[self.indices[i]]
        return self.drop(x) + torch.rand(()) * 0, y

class Stripe(Dataset):
    def __init__(self, data, first, step): self.data, self.first, self.step = data, first, step
    def __len__(self): return len(range(self.first, len(self.data), self.step))
    def __getitem__(self, i):
        if i < 0: raise IndexError(i)
        return self.data[self.first + i * self.step]

class Twice(Dataset):
    def __init__(self, data): self.data = data
    def __len__(self): return 2 * len(self.data)
    def __getitem__(self, i): return self.data[i % len(self.data)]

class AnyOne(Dataset):
    def __init__(self, data): self.data = data
    def __len__(self): return len(self.data)
    def __getitem__(self, i): return self.data[torch.randint(0, len(self.data), ()).item()]

class InTurn(Dataset):
    def __init__(self, data): self.data, self.next = data, 0
    def __len__(self): return len(self.data)
    def __getitem__(self, i):
        self.next += 1
        return self.data[self.next % len(self.data)]

asked = []
class Told(TensorDataset):
    def __getitem__(self, i): asked.append(i); return super().__getitem__(i)
"""


@pytest.mark.parametrize(
    "dataset",
    [
        "Share(root, torch.arange(40, 4, -1))",
        "Share(Subset(root, range(1, 41)), [3, 1, 4, 15, 9, 26, 5])",
        "Stripe(root, 1, 3)",
        "Subset(Stripe(Share(root, range(40, 0, -1)), 1, 3), [5, 2, 7, 1])",
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_shares_of_own_classes_are_traced_back_to_what_they_hold(
    ranks: Callable[..., Ran], dataset: str, workers: int
) -> None:
    ran = ranks(
        OWN_SHARES
        + TRAIN.format(
            dataset=f"root = data; data = {dataset}",
            options=f"num_workers={workers}",
            after="pass",
            root="root",
        ),
        nproc=1,
    )
    assert told(ran, 0) == printed(ran, 0)
    loader = ran.ranks[0].loaders[0]
    assert (loader.dataset, loader.root_size, loader.hides) == ("TensorDataset", 41, False)
    assert not ran.ranks[0].problems


@pytest.mark.parametrize(
    ("dataset", "root"),
    [("Twice(root)", "Twice"), ("AnyOne(root)", "AnyOne"), ("InTurn(root)", "InTurn")],
)
def test_own_classes_that_repeat_or_draw_samples_are_data_sets_of_their_own(
    ranks: Callable[..., Ran], dataset: str, root: str
) -> None:
    ran = ranks(
        OWN_SHARES
        + f"""
        torch.manual_seed(0)
        root = Told(torch.randn(41, 6), torch.zeros(41))
        state = torch.get_rng_state()
        loader = DataLoader({dataset}, batch_size=4)
        assert not asked and torch.equal(state, torch.get_rng_state())
        for _ in loader: pass
        """.replace("\n        ", "\n"),
        nproc=1,
    )
    assert ran.ranks[0].loaders[0].dataset == root
    assert [i for batch in told(ran, 0) for i in batch] == list(range(ran.ranks[0].loaders[0].size or 0))


def test_shares_that_are_dealt_anew_are_followed_and_copies_in_workers_that_live_on_are_not(
    ranks: Callable[..., Ran],
) -> None:
    ran = ranks(
        OWN_SHARES
        + """
root = TensorDataset(torch.arange(12), torch.zeros(12))
share = Share(root, [0, 1, 2, 3])
for options in ({}, dict(num_workers=1, persistent_workers=True)):
    share.indices = [0, 1, 2, 3]
    loader = DataLoader(share, batch_size=4, **options)
    for _ in range(2):
        for _ in loader: pass
        share.indices[:] = [8, 9, 10, 11]
""",
        nproc=1,
    )
    assert told(ran, 0) == [[0, 1, 2, 3], [8, 9, 10, 11], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert [loader.dataset for loader in ran.ranks[0].loaders] == ["TensorDataset", "Share"]


def test_an_iterable_data_set_is_told_by_hashes(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                for n in range(12):
                    yield torch.full((3,), float(n)), n % 3

        model = nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in DataLoader(Stream(), batch_size=4, num_workers=1):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
        """,
        nproc=1,
    )
    trace = ran.ranks[0]
    assert trace.loaders[0].iterable
    assert [batch.indices for batch in trace.batches] == [None] * 3
    assert [batch.size for batch in trace.batches] == [4] * 3
    assert len({h for feed in trace.feeds for h in feed.hashes}) == 12


def test_a_loader_read_through_before_training_explains_nothing(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        data = TensorDataset(torch.randn(40, 6), torch.randint(0, 3, (40,)))
        batches = list(DataLoader(data, batch_size=4))
        x, y = torch.cat([b[0] for b in batches]), torch.cat([b[1] for b in batches])
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(0, 40, 8):
            optimizer.zero_grad()
            cross_entropy(model(x[i : i + 8]), y[i : i + 8]).backward()
            optimizer.step()
        """,
        nproc=1,
    )
    assert [feed.size for feed in ran.ranks[0].feeds] == [8] * 5


def test_a_loader_that_validation_has_used_up_explains_nothing(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        x, y = torch.randn(24, 6), torch.randint(0, 3, (24,))
        held_out = DataLoader(TensorDataset(torch.randn(8, 6)), batch_size=4)
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows in torch.randperm(24).split(8):
                optimizer.zero_grad()
                cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for (batch,) in held_out:
                    model(batch)
            model.train()
        """,
        nproc=1,
    )
    assert [(feed.step, feed.spot) for feed in ran.ranks[0].feeds] == [(step, False) for step in range(9)]


def test_micro_batches_of_one_delivered_batch_are_explained(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        data = TensorDataset(torch.randn(40, 6), torch.randint(0, 3, (40,)))
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in DataLoader(data, batch_size=8):
            optimizer.zero_grad()
            for a, b in zip(x.chunk(4), y.chunk(4)):
                cross_entropy(model(a), b).backward()
            optimizer.step()
        """,
        nproc=1,
    )
    assert ran.ranks[0].feeds == ()
    assert [step.samples for step in ran.ranks[0].steps] == [8] * 5


SHARES = """
class Share(Dataset):
    def __init__(self, whole, rank): self.whole, self.rank, self.epoch, self.drawn = whole, rank, 0, 0
    def __len__(self): return len(self.whole) // 2
    def __getitem__(self, i):
        {drawn}
        return self.whole[sum((2 * i, self.rank))]  # not to be looked through

class Digits(TensorDataset):
    train = {train}

dist.init_process_group("gloo")
torch.manual_seed(0)
data = Digits(torch.randn(40, 6), torch.randint(0, 3, (40,)))
share = Share(data, dist.get_rank())
loader = DataLoader(share, batch_size=5)
model = DDP(nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    share.epoch = epoch
    for x, y in loader:
        {use}
"""
EVALUATES = "with torch.no_grad(): model.module(x)"


def test_a_data_set_around_another_is_of_its_split_and_tells_what_it_gave(ranks: Callable[..., Ran]) -> None:
    ran = ranks(SHARES.format(drawn="", train=False, use=EVALUATES))
    assert [rank.loaders[0].split for rank in ran.ranks] == ["validation"] * 2
    looks = [rank.events("evaluated") for rank in ran.ranks]
    assert [(e.fields["pass"], e.fields["n"]) for e in looks[0]] == [
        (p, n) for p in range(2) for n in range(4)
    ]
    assert all(e.fields["validates"] and e.fields["loader"] == 0 for e in looks[0])
    given = [{h for e in one for h in e.fields["hashes"]} for one in looks]
    assert [len(one) for one in given] == [20, 20]
    assert len(given[0] | given[1]) == 40


def test_a_data_set_of_the_scripts_own_tells_when_it_is_another(ranks: Callable[..., Ran]) -> None:
    ran = ranks(SHARES.format(drawn="", train=True, use="pass"))
    kept = [p.state for rank in ran.ranks for p in rank.passes]
    assert len(set(kept)) == 4
    assert None not in kept
    assert not any(p.changed for rank in ran.ranks for p in rank.passes)
    assert len({rank.loaders[0].digest for rank in ran.ranks}) == 1


def test_a_data_set_that_changes_while_it_is_drawn_from_says_so(ranks: Callable[..., Ran]) -> None:
    ran = ranks(SHARES.format(drawn="self.drawn += 1", train=True, use="pass"), nproc=1)
    assert [p.changed for p in ran.ranks[0].passes] == [True, True]
