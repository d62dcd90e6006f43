"""What the trace tells of gradients that are missing, never cleared, or belong to layers that DDP does not know."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.probe.trace import events
from tests.probe.warm_ranks import Ran

TRAIN = """
dist.init_process_group("gloo")
data = TensorDataset(torch.randn(48, 6), torch.randint(0, 3, (48,)))
net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
{wrap}
optimizer = torch.optim.SGD({params}.parameters(), lr=0.01)
for n, (x, y) in enumerate(DataLoader(data, batch_size=4)):
    {train}
dist.destroy_process_group()
"""
WRAP = "model = DDP(net)"
USUAL = "optimizer.zero_grad(); cross_entropy(model(x), y).backward(); optimizer.step()"


def text(wrap: str = WRAP, train: str = USUAL, params: str = "model") -> str:
    return TRAIN.format(wrap=wrap, train=train.strip().replace("\n", "\n    "), params=params)


def looked_at(ran: Ran) -> list[tuple[int | None, tuple[str, ...]]]:
    return [(s.empty, s.kept) for s in ran.ranks[0].steps if s.empty is not None]


@pytest.mark.parametrize(
    "clear",
    [
        "optimizer.zero_grad()",
        "optimizer.zero_grad(set_to_none=False)",
        "model.zero_grad()",
        "for p in model.parameters(): p.grad = None",
    ],
)
def test_every_way_to_clear_is_seen(ranks: Callable[..., Ran], clear: str) -> None:
    train = f"cross_entropy(model(x), y).backward()\noptimizer.step()\n{clear}"
    ran = ranks(text(train=train))
    assert looked_at(ran) == [(1, ())] * 8
    assert all((s.backwards, s.unsynced) == (1, 0) for s in ran.ranks[0].steps)


@pytest.mark.parametrize(
    ("between", "lost"),
    [
        ("optimizer.zero_grad()", 1),
        ("optimizer.zero_grad(set_to_none=False)", 1),
        (
            "[p.data.add_(0.1) for p in net.parameters()]; optimizer.zero_grad()",
            0,
        ),  # an ascent on the weights
        ("pass", 0),
    ],
)
def test_gradients_that_are_cleared_before_any_step_has_used_them(
    ranks: Callable[..., Ran], between: str, lost: int
) -> None:
    loss = "cross_entropy(model(x), y).backward()"
    ran = ranks(text(train=f"{loss}\n{between}\n{loss}\noptimizer.step()\noptimizer.zero_grad()"))
    looked = [s for s in ran.ranks[0].steps if s.empty is not None]
    assert looked
    assert all((s.backwards, s.lost) == (2, lost) for s in looked)
    assert not ran.events(events.UNSUPPORTED)


def test_gradients_that_are_never_cleared(ranks: Callable[..., Ran]) -> None:
    ran = ranks(text(train="cross_entropy(model(x), y).backward(); optimizer.step()"))
    assert looked_at(ran) == [(0, ("0.weight", "0.bias", "2.weight", "2.bias"))] * 8


@pytest.mark.parametrize("clear", ["net[2].zero_grad()", "for p in net[2].parameters(): p.grad.zero_()"])
def test_layers_of_which_nobody_clears_the_gradients_are_named(ranks: Callable[..., Ran], clear: str) -> None:
    ran = ranks(text(train=f"cross_entropy(model(x), y).backward(); optimizer.step()\n{clear}"))
    assert looked_at(ran) == [(0, ("0.weight", "0.bias"))] * 8


def test_accumulation_clears_once_per_step(ranks: Callable[..., Ran]) -> None:
    train = """
if n % 3 == 2:
    cross_entropy(model(x), y).backward()
    optimizer.step(); optimizer.zero_grad()
else:
    with model.no_sync():
        cross_entropy(model(x), y).backward()
"""
    ran = ranks(text(train=train))
    assert looked_at(ran) == [(1, ())] * 3
    assert [(s.backwards, s.unsynced) for s in ran.ranks[0].steps] == [(3, 2)] * 4


def test_parameters_without_a_gradient_are_counted_and_named(ranks: Callable[..., Ran]) -> None:
    wrap = "net.spare = nn.Linear(2, 2); net.forward = lambda x: net[2](net[1](net[0](x)))\n"
    first = ranks(text(wrap + "model = DDP(net, find_unused_parameters=True)")).ranks[0]
    assert {(s.num_params, s.num_missing, s.missing) for s in first.steps[:8]} == {
        (6, 2, ("spare.weight", "spare.bias"))
    }
    assert first.wraps[0].find_unused_parameters


def test_an_optimizer_over_a_copy_meets_no_gradient(ranks: Callable[..., Ran]) -> None:
    wrap = "import copy\nother = copy.deepcopy(net)\nmodel = DDP(net)"
    first = ranks(text(wrap, params="other")).ranks[0]
    assert {(s.num_params, s.num_missing) for s in first.steps[:8]} == {(4, 4)}
    assert all(s.backwards == 1 for s in first.steps)


def unheld(ran: Ran) -> list[object]:
    return [event.fields["names"] for event in ran.ranks[0].events("unheld")]


LEFT_OUT = """model = DDP(net)
kept = lambda: None
kept.parameters = lambda: [p for p in net.parameters() if p.ndim > 1]"""


def test_parameters_that_no_optimizer_holds_and_nobody_moves(ranks: Callable[..., Ran]) -> None:
    ran = ranks(text(LEFT_OUT, params="kept"))
    assert unheld(ran) == [["0.bias", "2.bias"]]
    assert unheld(ranks(text(LEFT_OUT, params="kept", train="model.zero_grad(); " + USUAL))) == unheld(ran)


@pytest.mark.parametrize(
    ("wrap", "train"),
    [
        (WRAP, USUAL),
        (f"net[0].requires_grad_(False)\n{WRAP}", USUAL),
        (LEFT_OUT, USUAL + "; [p.data.sub_(0.01 * p.grad) for p in net.parameters() if p.ndim == 1]"),
        (LEFT_OUT, USUAL + '\nif n == 2: optimizer.add_param_group({"params": [net[0].bias, net[2].bias]})'),
    ],
)
def test_parameters_that_are_frozen_or_moved_otherwise(
    ranks: Callable[..., Ran], wrap: str, train: str
) -> None:
    ran = ranks(text(wrap, params="kept" if wrap is LEFT_OUT else "model", train=train))
    assert unheld(ran) == []
    assert not ran.events(events.UNSUPPORTED)


def test_a_layer_replaced_after_the_wrap_is_told_once(ranks: Callable[..., Ran]) -> None:
    wrap = "model = DDP(net, find_unused_parameters=True)\nnet[2] = nn.Linear(8, 3)"
    ran = ranks(text(wrap))
    told = ran.events(events.CHANGED)
    assert [e.fields for e in told] == [
        {"wrap": 0, "added": ["2.weight", "2.bias"], "frozen": [], "thawed": [], "removed": 2}
    ]


def test_a_layer_that_learns_from_a_later_step_on(ranks: Callable[..., Ran]) -> None:
    train = f"net[0].requires_grad_(n > 2)\n{USUAL}"
    ran = ranks(text(f"net[0].requires_grad_(False)\n{WRAP}", params="net", train=train))
    told = ran.events(events.CHANGED)
    assert [e.fields["thawed"] for e in told] == [["0.weight", "0.bias"]]


def test_a_model_that_stays_as_it_is_tells_nothing(ranks: Callable[..., Ran]) -> None:
    ran = ranks(text("net = torch.nn.Sequential(net)\nmodel = DDP(net, gradient_as_bucket_view=True)"))
    assert not ran.events(events.CHANGED)
    assert looked_at(ran) == [(1, ())] * 8
    assert not ran.events(events.UNSUPPORTED)


TURNS = """
dist.init_process_group("gloo")
generator, critic = DDP(nn.Linear(4, 4)), DDP(nn.Linear(4, 1))
for_generator = torch.optim.Adam(generator.parameters())
for_critic = torch.optim.Adam(critic.parameters())
for _ in range(6):
    real, noise = torch.randn(8, 4), torch.randn(8, 4)
    for_critic.zero_grad()
    critic(generator(noise).detach()).mean().backward()
    (-critic(real).mean()).backward()
    for_critic.step()
    for_generator.zero_grad()
    (-critic(generator(noise)).mean()).backward()
    for_generator.step()
dist.destroy_process_group()
"""


def test_a_step_tells_in_which_wrapper_its_parameters_are(ranks: Callable[..., Ran]) -> None:
    both = ranks(TURNS).ranks[0].steps
    assert [(s.wraps, s.modules) for s in both[:2]] == [((1,), ("Linear",)), ((0,), ("Linear",))]
    beside = ranks(TURNS.replace("DDP(nn.Linear(4, 4))", "nn.Linear(4, 4)")).ranks[0].steps
    assert [s.wraps for s in beside[:2]] == [(0,), ()]


def test_models_that_take_turns_are_cleared_between_their_own_steps(ranks: Callable[..., Ran]) -> None:
    ran = ranks(TURNS)
    assert not ran.events(events.UNSUPPORTED)
    assert not ran.events(events.CHANGED)
    steps = ran.ranks[0].steps
    assert len(steps) == 12
    assert all(s.empty == 1 for s in steps if s.empty is not None)
    assert {(s.optimizer, s.backwards) for s in steps} == {(0, 2), (1, 1)}


CLOSURE = "optimizer.step(lambda: (optimizer.zero_grad(), (loss := cross_entropy(model(x), y)).backward(), loss)[-1])"
SHARDED = "from torch.distributed.optim import ZeroRedundancyOptimizer as Zero"


@pytest.mark.parametrize(
    ("wrap", "train"),
    [
        (WRAP, CLOSURE),
        (f"{SHARDED}\n{WRAP}\nclear = Zero(model.parameters(), torch.optim.SGD, lr=0.01)", USUAL),
        (WRAP, "model.zero_grad(); model.forward(x).square().mean().backward(); optimizer.step()"),
    ],
)
def test_other_ways_to_step_are_no_accumulation(ranks: Callable[..., Ran], wrap: str, train: str) -> None:
    train = train.replace("optimizer.", "clear.") if "clear =" in wrap else train
    ran = ranks(text(wrap, train))
    assert not ran.events(events.UNSUPPORTED)
    first = ran.ranks[0]
    assert len(first.steps) == 12
    assert not any(s.kept for s in first.steps)
    assert {s.num_missing for s in first.steps if s.num_missing is not None} <= {0}


@pytest.mark.parametrize(
    ("train", "times"),
    [
        pytest.param(USUAL, 1, id="averaged"),
        pytest.param(
            "optimizer.zero_grad(); cross_entropy(model(x), y).backward()\n"
            "nn.utils.clip_grad_value_(model.parameters(), 1e9); optimizer.step()",
            1,
            id="clipped by a limit that is never reached",
        ),
        pytest.param(
            "optimizer.zero_grad(); (2 * cross_entropy(model(x), y)).backward()\n"
            "[p.grad.div_(2) for p in model.parameters()]; optimizer.step()",
            2,
            id="scaled",
        ),
        pytest.param(
            "if n == 0:\n"
            "    def averaged(g): dist.all_reduce(g := g.clone()); return g / 2\n"
            "    for p in net.parameters(): p.register_hook(averaged)\n"
            "optimizer.zero_grad(); cross_entropy(net(x), y).backward(); optimizer.step()",
            1,
            id="averaged by hooks of the script's own",
        ),
    ],
)
def test_what_ranks_step_on_is_the_mean_of_what_they_gave(
    ranks: Callable[..., Ran], train: str, times: int
) -> None:
    ran = ranks(text(train=train))
    first, second = (
        {s.n: s for s in rank.steps if s.own is not None and s.grads is not None} for rank in ran.ranks
    )
    assert list(first) == list(second)
    assert len(first) >= 7
    assert 0 not in first, "nobody was there before the first step"
    for n, step in first.items():
        assert step.own is not None
        mean = [((a or 0) + (b or 0)) / 2 / times for a, b in zip(step.own, second[n].own or (), strict=True)]
        assert step.grads == pytest.approx(mean, rel=1e-4, abs=1e-6)
        assert step.own == step.own_last != second[n].own
    assert not any("hook" in str(event.fields) for event in ran.events(events.UNSUPPORTED))


def test_a_gradient_that_a_script_asks_for_is_its_last_word(ranks: Callable[..., Ran]) -> None:
    train = """
optimizer.zero_grad(); cross_entropy(model(x), y).backward()
for p, g in zip(net.parameters(), torch.autograd.grad(cross_entropy(net(x + 1), y), list(net.parameters()))): p.grad = g
optimizer.step()
"""
    ran = ranks(text(train=train))
    looked = [s for s in ran.ranks[0].steps if s.own is not None]
    assert looked
    for step in looked:
        assert step.grads == pytest.approx(step.own_last)
        assert step.own != step.own_last


def unstepped(ran: Ran) -> list[object]:
    return [event.fields["gradients"] for event in ran.ranks[0].events("unstepped")]


BY_HAND = """
for _ in range(80):
    loss = cross_entropy(net(data.tensors[0]), data.tensors[1])
    for p, g in zip(net.parameters(), torch.autograd.grad(loss, list(net.parameters()))):
        p.data.sub_(0.1 * g)
dist.destroy_process_group()
"""


SHARPNESS = """
for k in range(40):
    if k == 20: net[0].weight.data.add_(0.01)
    cross_entropy(model(x), y).backward()
net[0].weight.data.sub_(0.01)
optimizer.step()
"""


def test_training_that_no_step_tells_of(ranks: Callable[..., Ran]) -> None:
    assert unstepped(ranks(text().replace("dist.destroy_process_group()\n", BY_HAND.lstrip()))) == [64]


@pytest.mark.parametrize(
    "train",
    [
        "cross_entropy(model(x), y).backward()\nif n == 11: optimizer.step()",
        "for _ in range(90): torch.autograd.grad(cross_entropy(net(x), y), list(net.parameters()))\n" + USUAL,
        SHARPNESS,
    ],
    ids=["accumulated", "looked_at", "sharpness_aware"],
)
def test_many_gradients_of_the_same_weights_are_none(ranks: Callable[..., Ran], train: str) -> None:
    assert unstepped(ranks(text(train=train).replace("batch_size=4", "batch_size=1"))) == []


def test_closures_step_between_their_gradients(ranks: Callable[..., Ran]) -> None:
    train = """
def closure():
    optimizer.zero_grad()
    loss = cross_entropy(model(x), y)
    loss.backward()
    return loss
optimizer.step(closure)
"""
    script = text(wrap="model = net", train=train).replace("SGD(", "LBFGS(max_iter=40, params=")
    assert unstepped(ranks(script)) == []


def test_samples_that_a_network_puts_away_were_not_fed(ranks: Callable[..., Ran]) -> None:
    script = text(train="optimizer.zero_grad(); cross_entropy(model(x), y[:1]).backward(); optimizer.step()")
    first = "class First(nn.Sequential):\n    def forward(self, x): return super().forward(x[:1])\n"
    ran = ranks(first + script.replace("net = nn.Sequential(", "net = First("))
    assert {step.samples for step in ran.ranks[0].steps} == {1}


def test_what_a_network_puts_away_in_evaluation_counts_as_little(ranks: Callable[..., Ran]) -> None:
    script = text(train="net.eval(); net(x); net.train()\n" + USUAL.replace(", y)", ", y[:1])"))
    first = "class First(nn.Sequential):\n    def forward(self, x): return super().forward(x[:1])\n"
    (rank, _) = ranks(first + script.replace("net = nn.Sequential(", "net = First(")).ranks
    ends = [event for event in rank.events("evaluation") if event.fields["op"] == "end"]
    assert {event.fields["num_samples"] for event in ends} == {1}
    assert {step.samples for step in rank.steps} == {1}


AVERAGE = """
def average(params):
    for p in params:
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
"""
WAYS_WITHIN_A_STEP = {
    "a class that extends torch's": """
class Averaging(torch.optim.SGD):
    def step(self, closure=None):
        average(p for group in self.param_groups for p in group["params"])
        return super().step(closure)
optimizer = Averaging(net.parameters(), lr=0.01)
""",
    "a mixin": """
class Mixin:
    def step(self, closure=None):
        average(net.parameters())
        return super().step(closure)
class Averaging(Mixin, torch.optim.AdamW):
    pass
optimizer = Averaging(net.parameters(), lr=0.01)
""",
    "a hook of the optimizer": """
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
optimizer.register_step_pre_hook(lambda one, args, kwargs: average(net.parameters()))
""",
    "an update of its own": """
class Averaging(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.01})
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            average(group["params"])
            for p in group["params"]:
                p -= group["lr"] * p.grad
optimizer = Averaging(net.parameters())
""",
}


@pytest.mark.parametrize("way", WAYS_WITHIN_A_STEP)
def test_gradients_that_a_step_itself_averages_are_those_that_it_steps_on(
    ranks: Callable[..., Ran], way: str
) -> None:
    ran = ranks(
        'dist.init_process_group("gloo")\ntorch.manual_seed(0)\n'
        "net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))\n"
        f"{AVERAGE}{WAYS_WITHIN_A_STEP[way]}"
        "torch.manual_seed(dist.get_rank())\n"
        "for _ in range(6):\n"
        "    optimizer.zero_grad()\n"
        "    cross_entropy(net(torch.randn(4, 6)), torch.randint(0, 3, (4,))).backward()\n"
        "    optimizer.step()\n"
        "dist.destroy_process_group()\n"
    )
    first, second = (rank.steps for rank in ran.ranks)
    assert len(first) == len(second) == 6
    assert [step.grads for step in first] == [step.grads for step in second]
    assert all(step.grads for step in first)
    assert [step.own for step in first[1:]] != [step.own for step in second[1:]]
