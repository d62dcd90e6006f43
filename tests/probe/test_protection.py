"""The probe disturbs nothing: models stay what they are, and whatever happens to the probe, the script goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.probe.trace import events
from tests.probe.warm_ranks import Ran

LOOP = """
model = nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(n):
    for _ in range(n):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()
"""


def test_the_same_numbers_come_out_with_and_without(ranks: Callable[..., Ran]) -> None:
    text = """
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(40, 6), torch.randint(0, 3, (40,)))
    sampler = DistributedSampler(data)
    model = DDP(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3)))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=5, sampler=sampler, num_workers=epoch):
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            print(loss.item())
    print([p.sum().item() for p in model.parameters()], torch.randint(0, 1000, (3,)))
    dist.destroy_process_group()
    """
    assert ranks(text).stdout == ranks(text, probe=False).stdout


def test_models_are_pickled_and_copied_as_ever(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        import copy, inspect, io, pickle
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 3)
            def forward(self, x):
                return self.layer(x)
        dist.init_process_group("gloo")
        model = DDP(Net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for n in range(2):
            model(torch.ones(4, 3)).sum().backward()
            optimizer.step()
        average = copy.deepcopy(model.module)
        average(torch.ones(1, 3)); copy.deepcopy(model)(torch.ones(1, 3)).sum().backward()
        file = io.BytesIO()
        torch.save(model, file); torch.save(model.module, OUT + f"/{dist.get_rank()}.pt")
        loaded = torch.load(OUT + f"/{dist.get_rank()}.pt", weights_only=False)
        assert b"grader" not in pickle.dumps(model.module) and b"grader" not in file.getvalue()
        assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), model.parameters()))
        assert vars(model.module).keys() == vars(Net()).keys()
        assert "self.layer(x)" in inspect.getsource(Net.forward)
        assert inspect.signature(torch.save).parameters["obj"] and inspect.signature(DDP).parameters["module"]
        pickle.dumps(optimizer.state_dict()); copy.deepcopy(optimizer)
        torch.jit.script(nn.Linear(2, 2)); torch.jit.trace(model.module, torch.ones(1, 3))
        dist.destroy_process_group()
        """
    )
    assert len(ran.ranks[0].steps) == 2
    assert ran.events(events.UNSUPPORTED) == ()


@pytest.mark.parametrize(
    "wrap",
    [
        "model = DDP(torch.compile(net, backend=backend))",
        "model = torch.compile(DDP(net), backend=backend)",
        "model = DDP(net); net.compile(backend=backend)",
    ],
)
def test_compiled_models(ranks: Callable[..., Ran], wrap: str) -> None:
    text = f"""
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        def forward(self, x):
            return self.layers(x)
    net = Net()
    compiled = []
    def backend(graph, inputs):
        compiled.append(len(list(graph.graph.nodes)))
        return graph.forward
    {wrap}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for n in range(4):
        optimizer.zero_grad()
        cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,))).backward()
        optimizer.step()
    assert compiled
    print(compiled)
    dist.destroy_process_group()
    """
    ran = ranks(text)
    first, second = ran.ranks
    assert len(first.steps) == 4
    assert [step.grads for step in first.steps] == [step.grads for step in second.steps]
    assert [step.synced for step in first.steps] == [True] * 4
    assert ran.events(events.BYPASS) == ()
    assert ran.events(events.UNSUPPORTED) == ()
    assert ran.stdout == ranks(text, probe=False).stdout


def test_a_whole_compiled_training_step(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        @torch.compile(backend="eager")
        def step(x, y):
            cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        before = model.weight[0, 0].item()
        for n in range(3):
            step(torch.randn(4, 6), torch.randint(0, 3, (4,)))
        print(model.weight[0, 0].item() != before)
        """,
        nproc=1,
    )
    assert ran.stdout[0].split() == ["True"]


@pytest.mark.parametrize(
    "attack",
    [
        "os.closerange(3, 4096)",
        "os.closerange(3, 4096); files = [open(OUT + f'/{n}', 'wb') for n in range(200)]",
        "os.write = os.getpid = json = None",
        "import json; json.dumps = None; json.JSONEncoder = None",
        "import time; time.monotonic = lambda: 1 / 0",
        "import weakref; weakref.ref = None",
    ],
)
def test_the_script_goes_on_whatever_it_does_to_us(ranks: Callable[..., Ran], attack: str) -> None:
    ran = ranks(LOOP + f"step(5)\n{attack}\nstep(200)\nprint('done')", nproc=1)
    assert ran.stdout[0] == "done\n"
    assert [step.n for step in ran.ranks[0].steps[:5]] == [0, 1, 2, 3, 4]
    for file in ran.output.iterdir():
        assert file.stat().st_size == 0


def test_a_hook_that_breaks_says_so_once_and_stays_out_of_the_way(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        class Odd(Dataset):
            def __len__(self): return 4
            def __getitem__(self, i): return torch.zeros(1)
            @property
            def train(self): raise RuntimeError("nobody may ask")
        for _ in range(3):
            print(len(list(DataLoader(Odd(), batch_size=2))))
        """,
        nproc=1,
    )
    assert ran.stdout[0].split() == ["2", "2", "2"]
    reasons = [event.fields["reason"] for event in ran.events(events.UNSUPPORTED)]
    assert reasons == ["hook loader failed: RuntimeError: nobody may ask"]
    assert ran.ranks[0].ended


def test_everything_before_a_kill_is_kept(ranks: Callable[..., Ran]) -> None:
    ran = ranks(LOOP + "step(37)\nos.kill(os.getpid(), 9)", nproc=1, expect=-9)
    trace = ran.ranks[0]
    assert [step.n for step in trace.steps] == list(range(37))
    assert not trace.ended
    assert trace.problems == ("The trace stops before the script's end was told.",)
    assert trace.suspicions == ()


def test_an_exception_is_told_with_its_place(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        LOOP
        + """
def feed(width):
    return model(torch.ones(1, width))

step(2)
feed(5)
""",
        nproc=1,
        expect=1,
    )
    (event,) = ran.events(events.EXCEPTION)
    assert event.fields["type"] == "RuntimeError"
    assert "shapes cannot be multiplied" in event.fields["message"]
    assert [frame[2] for frame in event.fields["frames"]] == ["feed", "<module>"]
    assert ran.ranks[0].ended
    assert ran.ranks[0].finals == ()


@pytest.mark.parametrize(("code", "told"), [("0", 0), ("None", 0), ("3", 1)])
def test_leaving_by_sys_exit(ranks: Callable[..., Ran], code: str, told: int) -> None:
    ran = ranks(LOOP + f"step(2); sys.exit({code})", nproc=1, expect=3 if code == "3" else 0)
    assert len(ran.events(events.EXCEPTION)) == told
    assert len(ran.ranks[0].finals) == 1 - told


@pytest.mark.parametrize(("code", "told"), [(0, 0), (3, 1)])
def test_who_leaves_at_once_is_heard_first(ranks: Callable[..., Ran], code: int, told: int) -> None:
    ran = ranks(LOOP + f"step(2); import os; os._exit({code})", nproc=1, expect=code)
    assert ran.ranks[0].ended
    assert len(ran.events(events.END)) == 1
    assert len(ran.events(events.EXCEPTION)) == told
    assert len(ran.ranks[0].finals) == 1 - told


def test_the_model_may_be_gone_when_the_script_ends(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        def main():
            model = nn.Linear(3, 3)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model(torch.ones(4, 3)).sum().backward()
            optimizer.step()
            print(sum(p.double().sum().item() for p in model.parameters()))
        main()
        """,
        nproc=1,
    )
    (final,) = ran.ranks[0].finals
    assert sum(s or 0.0 for s in final.sums) == pytest.approx(float(ran.stdout[0]))
