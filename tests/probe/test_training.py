"""Steps, gradients and the ways around DDP, as the trace tells them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.probe.trace import events
from tests.probe.warm_ranks import Ran

TRAIN = """
dist.init_process_group("gloo")
rank = dist.get_rank()
generator = torch.Generator().manual_seed(rank)
data = TensorDataset(torch.randn(48, 6, generator=generator), torch.randint(0, 3, (48,), generator=generator))
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
{wrap}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4)
for n, (x, y) in enumerate(DataLoader(data, batch_size=4)):
    {train}
dist.destroy_process_group()
"""
PLAIN = "optimizer.zero_grad(); cross_entropy(model(x), y).backward(); optimizer.step(); scheduler.step()"


def test_ddp_steps_on_equal_gradients(ranks: Callable[..., Ran]) -> None:
    ran = ranks(TRAIN.format(wrap="model = DDP(net)", train=PLAIN))
    first, second = ran.ranks
    assert len(first.steps) == len(second.steps) == 12
    sampled = [step for step in first.steps if step.grads is not None]
    assert [step.n for step in sampled] == list(range(8))
    assert [step.grads for step in first.steps] == [step.grads for step in second.steps]
    assert [p.sums for p in first.params] == [p.sums for p in second.params]
    assert first.finals[0].sums == second.finals[0].sums
    assert all(step.synced for step in first.steps)
    assert [step.loss for step in first.steps] != [step.loss for step in second.steps]
    assert [round(step.lr[0], 6) for step in first.steps[::4]] == [0.1, 0.01, 0.001]
    assert [step.samples for step in first.steps] == [4] * 12
    assert {step.kind for step in first.steps} == {"SGD"}
    assert first.steps[0].site is not None
    assert ran.events(events.LR_SCHEDULER)[0].fields["kind"] == "StepLR"
    assert ran.events(events.HELD)[0].fields["group_elements"] == [99]
    wrap = first.wraps[0]
    assert (wrap.kind, wrap.module, wrap.num_params, wrap.num_batchnorm) == ("ddp", "Sequential", 99, 1)
    assert wrap.gradient_bytes == 4 * 99
    assert (first.groups[0].op, first.groups[0].world_size, first.groups[1].op) == ("init", 2, "destroy")
    end = ran.events(events.END)[0].fields
    assert end["steps"] == end["backwards"] == end["forwards"] == 12
    assert end["group_destroyed"]
    assert end["sequence"] >= 12
    assert not first.problems
    assert not first.suspicions


def test_without_a_wrapper_gradients_and_results_differ(ranks: Callable[..., Ran]) -> None:
    first, second = ranks(TRAIN.format(wrap="model = net", train=PLAIN)).ranks
    assert all(a.grads != b.grads for a, b in zip(first.steps[:8], second.steps[:8], strict=True))
    assert all(step.synced is None for step in first.steps)
    assert (
        first.finals[0].names
        == second.finals[0].names
        == ("0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias")
    )
    assert first.finals[0].sums != second.finals[0].sums


def test_gradients_averaged_by_hand_are_equal(ranks: Callable[..., Ran]) -> None:
    train = """
    optimizer.zero_grad()
    cross_entropy(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= 2
    optimizer.step()
    """.replace("\n    ", "\n    ")
    first, second = ranks(TRAIN.format(wrap="model = net", train=train.strip())).ranks
    assert [step.grads for step in first.steps] == [step.grads for step in second.steps]
    assert first.finals[0].sums == second.finals[0].sums
    told = [c for c in first.collectives if c.name == "all_reduce"]
    assert [c.n for c in told] == [*range(1, 65)]
    assert {c.reduce_op for c in told} == {"SUM"}


def test_a_forward_pass_around_the_wrapper_is_told(ranks: Callable[..., Ran]) -> None:
    train = PLAIN.replace("model(x)", "model.module(x)")
    ran = ranks(TRAIN.format(wrap="model = DDP(net)", train=train))
    bypasses = ran.events(events.BYPASS)
    assert [event.fields["n"] for event in bypasses] == list(range(8))
    assert bypasses[0].site is not None
    assert not any(step.synced for step in ran.ranks[0].steps)
    assert ran.ranks[0].steps[0].grads != ran.ranks[1].steps[0].grads


def test_what_goes_around_a_wrapper_that_nobody_holds_any_more(ranks: Callable[..., Ran]) -> None:
    wrap = "model = DDP(net).module"
    ran = ranks(TRAIN.format(wrap=wrap, train=PLAIN))
    assert len(ran.events(events.BYPASS)) == 8
    assert {step.synced for step in ran.ranks[0].steps} == {False}


def test_parameters_that_a_wrapper_leaves_alone(ranks: Callable[..., Ran]) -> None:
    told = 'DDP._set_params_and_buffers_to_ignore_for_model(net, ["1.weight", "1.running_mean"]); model = DDP(net)'
    ran = ranks(TRAIN.format(wrap=told, train=PLAIN))
    assert ran.ranks[0].wraps[0].ignored == ("1.weight",)
    ran = ranks(TRAIN.format(wrap="model = DDP(net)", train=PLAIN))
    assert ran.ranks[0].wraps[0].ignored == ()


def test_steps_within_the_backward_pass(ranks: Callable[..., Ran]) -> None:
    hook = "list(net.parameters())[-1].register_post_accumulate_grad_hook(lambda p: optimizer.step())"
    inside = f"n or {hook}; optimizer.zero_grad(); cross_entropy(model(x), y).backward(); scheduler.step()"
    ran = ranks(TRAIN.format(wrap="model = DDP(net)", train=inside))
    assert [step.within for step in ran.ranks[0].steps[:8]] == [True] * 8
    ran = ranks(TRAIN.format(wrap="model = DDP(net)", train=PLAIN))
    assert not any(step.within for step in ran.ranks[0].steps)


def test_a_schedule_of_an_optimizer_that_never_steps(ranks: Callable[..., Ran]) -> None:
    anew = "if n == 0: optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
    ran = ranks(TRAIN.format(wrap="model = DDP(net)", train=f"{anew}\n    {PLAIN}"))
    told = [(e.fields["calls"], e.fields["n"]) for e in ran.ranks[0].events(events.IDLE_SCHEDULE)]
    assert told == [(1, 1), (2, 2), (4, 4), (8, 8)]
    ran = ranks(TRAIN.format(wrap="model = DDP(net)", train=PLAIN))
    assert ran.events(events.IDLE_SCHEDULE) == ()


def test_what_a_schedule_that_waits_for_a_plateau_is_given(ranks: Callable[..., Ran]) -> None:
    made = (
        "if n == 0: scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, 'max', 0.5, patience=1)"
    )
    step = "optimizer.step(); scheduler.step(torch.tensor(1.0 / (n + 1)))"
    ran = ranks(
        TRAIN.format(
            wrap="model = DDP(net)", train=f"{made}\n    {PLAIN.partition('optimizer.step')[0]}{step}"
        )
    )
    told = [e.fields for e in ran.ranks[0].events(events.PLATEAU)]
    assert [round(t["value"], 3) for t in told[:3]] == [1.0, 0.5, 0.333]
    assert [(t["mode"], t["before"], t["after"], t["n"]) for t in told[:3]] == [
        ("max", 0.1, 0.1, 1), ("max", 0.1, 0.1, 2), ("max", 0.1, 0.05, 3),
    ]  # fmt: skip
    site = ran.ranks[0].events(events.LR_SCHEDULER)[-1].site
    assert site is not None
    assert told[0]["made"][1] == site.line
    assert len(told) == 12


def test_ddp_forward_called_by_name_is_no_bypass(ranks: Callable[..., Ran]) -> None:
    ran = ranks(TRAIN.format(wrap="model = DDP(net)", train=PLAIN.replace("model(x)", "model.forward(x)")))
    assert ran.events(events.BYPASS) == ()
    assert all(step.synced for step in ran.ranks[0].steps)


def test_no_sync_is_told_and_the_last_micro_step_counts(ranks: Callable[..., Ran]) -> None:
    train = """
    import contextlib
    with model.no_sync() if n % 2 == 0 else contextlib.nullcontext():
        cross_entropy(model(x), y).backward()
    if n % 2:
        optimizer.step()
        optimizer.zero_grad()
    """
    ran = ranks(TRAIN.format(wrap="model = DDP(net)", train=train.strip()))
    first, second = ran.ranks
    assert [event.fields["op"] for event in ran.events(events.NO_SYNC)] == ["enter", "exit"] * 6
    assert [step.synced for step in first.steps] == [True] * 6
    assert [step.samples for step in first.steps] == [8] * 6
    assert [step.grads for step in first.steps] == [step.grads for step in second.steps]


def test_stepping_inside_no_sync_shows(ranks: Callable[..., Ran]) -> None:
    train = """
    with model.no_sync():
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    """
    first, second = ranks(TRAIN.format(wrap="model = DDP(net)", train=train.strip())).ranks
    assert [step.synced for step in first.steps] == [False] * 12
    assert first.steps[0].grads != second.steps[0].grads


def test_only_the_outer_optimizer_counts(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        from torch.distributed.optim import ZeroRedundancyOptimizer
        dist.init_process_group("gloo")
        model = DDP(nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3)))
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
        for n in range(5):
            optimizer.zero_grad()
            cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,))).backward()
            optimizer.step()
        dist.destroy_process_group()
        """
    )
    for trace in ran.ranks:
        assert [step.n for step in trace.steps] == [0, 1, 2, 3, 4]
        assert {step.kind for step in trace.steps} == {"ZeroRedundancyOptimizer"}
        assert not trace.suspicions
    assert [p.sums for p in ran.ranks[0].params] == [p.sums for p in ran.ranks[1].params]


def test_a_step_that_raised_does_not_hide_the_next(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        class Broken(torch.optim.SGD):
            def step(self, closure=None):
                raise ValueError("never steps")

        model = nn.Linear(3, 3)
        broken, whole = Broken(model.parameters(), lr=0.1), torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.randn(4, 3)).sum().backward()
            try:
                broken.step()
            except ValueError:
                whole.step()
        """,
        nproc=1,
    )
    assert [step.kind for step in ran.ranks[0].steps] == ["Broken", "SGD"] * 3


def test_weights_loaded_after_training_are_not_what_was_trained(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        model = nn.Linear(3, 3)
        best = {name: p.clone() for name, p in model.state_dict().items()}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(4, 3)).sum().backward()
        optimizer.step()
        model.load_state_dict(best)
        """,
        nproc=1,
    )
    assert [line["touched"] for line in ran.lines[0] if line["e"] == "final"] == [True]


def test_evaluation_passes_are_told(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        dist.init_process_group("gloo")
        model = DDP(nn.Linear(6, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(4, 6), torch.randint(0, 3, (4,))
        for epoch in range(2):
            model.train()
            cross_entropy(model(x), y).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                for _ in range(3):
                    model(x)
                for _ in range(2):
                    model.module(x)
        dist.destroy_process_group()
        """
    )
    ends = [event.fields for event in ran.events(events.EVALUATION) if event.fields["op"] == "end"]
    assert [(e["num_forwards"], e["num_samples"], e["through_wrapper"]) for e in ends] == [
        (3, 12, True),
        (2, 8, False),
    ] * 2
    assert {(e["training_mode"], e["grad_enabled"]) for e in ends} == {(False, False)}


def test_collectives_imported_by_name_and_nested_ones(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        from torch.distributed import all_reduce
        from torch.distributed.distributed_c10d import broadcast
        dist.init_process_group("gloo")
        for _ in range(130):
            all_reduce(torch.ones(3), op=dist.ReduceOp.MAX)
        broadcast(torch.ones(2), src=0)
        dist.all_gather_object([None, None], {"rank": dist.get_rank()})
        dist.barrier()
        """
    )
    told = ran.ranks[0].collectives
    assert [c.n for c in told if c.name == "all_reduce"] == [*range(1, 65), 128]
    assert {c.reduce_op for c in told if c.name == "all_reduce"} == {"MAX"}
    assert [c.name for c in told if c.name != "all_reduce"] == ["broadcast", "all_gather_object", "barrier"]
    assert ran.events(events.END)[0].fields["group_destroyed"] is False


def test_replicas_of_one_linear_layer_are_told_apart(ranks: Callable[..., Ran]) -> None:
    # Its gradients add up to 0 over the classes, so that plain sums of weights never move.
    first, second = ranks(
        """
        dist.init_process_group("gloo")
        torch.manual_seed(0)
        model = nn.Linear(784, 10)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        torch.manual_seed(dist.get_rank())
        for n in range(6):
            optimizer.zero_grad()
            cross_entropy(model(torch.randn(8, 784)), torch.randint(0, 10, (8,))).backward()
            optimizer.step()
        dist.barrier()  # who keeps the store must not leave while the other still looks for it
        """
    ).ranks
    for a, b in zip(first.params, second.params, strict=True):
        assert abs((a.sums[0] or 0.0) - (b.sums[0] or 0.0)) > 1e-3


EPOCHS = """
dist.init_process_group("gloo")
torch.manual_seed(0)
x, y = torch.randn(4, 6), torch.tensor([0, 1, 2, 0])
net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
{wrap}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for epoch in range(3):
    {first}
    for _ in range(2):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    {last}
dist.destroy_process_group()
"""


def in_epochs(
    first: str = "pass", last: str = "pass", before: str = "pass", wrap: str = "model = DDP(net)"
) -> str:
    return EPOCHS.format(first=first, last=last, before=before, wrap=wrap)


VALIDATE = "net.eval(); torch.no_grad()(net)(x)"


def test_copies_of_the_network_that_nobody_trains_are_counted(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        import copy
        dist.init_process_group("gloo")
        model = DDP(nn.Linear(6, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(4, 6), torch.randint(0, 3, (4,))
        cross_entropy(model(x), y).backward()
        optimizer.step()
        ema = torch.optim.swa_utils.AveragedModel(model.module)
        twin = copy.deepcopy(model.module)
        with torch.no_grad():
            ema(x), twin(input=x), twin.eval()(x[0])
        dist.destroy_process_group()
        """
    )
    assert ran.events(events.END)[0].fields["elsewhere"] == 4 + 4 + 6
    assert ran.events(events.EVALUATION) == ()


def test_steps_in_evaluation_mode_are_told(ranks: Callable[..., Ran]) -> None:
    ran = ranks(in_epochs(last=VALIDATE, before="model.train()"))
    assert [step.evaluation_mode for step in ran.ranks[0].steps] == [False, False, True, True, True, True]
    assert [step.samples for step in ran.ranks[0].steps] == [4] * 6
    told = ran.events(events.TRAINED_IN_EVALUATION)
    assert [event.fields["n"] for event in told] == [2]
    fields = told[0].fields
    assert (fields["num_batchnorm"], fields["num_dropout"], fields["untracked"]) == (1, 1, False)
    assert told[0].site is not None
    assert fields["left"][1] == told[0].site.line + 2
    # What trained is no evaluation.
    begun = [e.fields["grad_enabled"] for e in ran.events(events.EVALUATION) if e.fields["op"] == "begin"]
    assert begun == [False] * 3


def test_a_network_that_was_never_in_training_mode(ranks: Callable[..., Ran]) -> None:
    ran = ranks(in_epochs(before="net.eval()"))
    assert all(step.evaluation_mode for step in ran.ranks[0].steps)
    assert [e.fields["untracked"] for e in ran.events(events.TRAINED_IN_EVALUATION)] == [True]
    assert ran.events(events.EVALUATION) == ()


def test_a_network_inside_of_what_is_trained_is_left_in_evaluation_mode(ranks: Callable[..., Ran]) -> None:
    shell = "model = DDP(nn.Sequential(net))"
    ran = ranks(in_epochs(last=VALIDATE, wrap=shell))
    assert [step.evaluation_mode for step in ran.ranks[0].steps] == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    "modes",
    [
        {"first": "model.train()", "last": VALIDATE},
        {"first": "model.train(); net[1].eval(); net[2].eval()", "last": VALIDATE},  # frozen on purpose
        {"first": "model.eval(); net[3].train()"},
        {"first": "model.train(); cross_entropy(net.eval()(x), y).backward(); net.train()"},  # an attack
    ],
    ids=["back", "frozen", "head", "attack"],
)
def test_no_step_is_one_in_evaluation_mode(ranks: Callable[..., Ran], modes: dict[str, str]) -> None:
    ran = ranks(in_epochs(**modes))
    assert not any(step.evaluation_mode for step in ran.ranks[0].steps)
    assert ran.events(events.TRAINED_IN_EVALUATION) == ()


def test_what_an_optimizer_steps_with_is_told_at_first_and_when_it_has_changed(
    ranks: Callable[..., Ran],
) -> None:
    train = PLAIN + "; optimizer.param_groups[0]['momentum'] = 0.9 if n < 4 else 0.5"
    first, second = ranks(TRAIN.format(wrap="model = DDP(net)", train=train)).ranks
    told, changed = first.events(events.SETTINGS)
    assert (told.fields["n"], changed.fields["n"], told.fields["optimizer"]) == (0, 5, 0)
    assert told.fields["groups"] == [
        {
            "momentum": 0.9,
            "dampening": 0,
            "weight_decay": 0,
            "nesterov": False,
            "maximize": False,
            "initial_lr": 0.1,
        }
    ]
    assert changed.fields["groups"][0]["momentum"] == 0.5
    assert len(second.events(events.SETTINGS)) == 2


def test_several_threads_that_train_at_once_are_left_alone(ranks: Callable[..., Ran]) -> None:
    """One after the other may train in threads of their own; side by side, what is kept of them would be mixed up."""
    script = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

def train(together):
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(20):
        together()
        net(torch.ones(8, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

first = Thread(target=train, args=(bool,))
first.start()
first.join()
print("alone", flush=True)
with ThreadPoolExecutor(4) as pool:
    list(pool.map(train, [Barrier(4).wait] * 4))
"""
    ran = ranks(script, nproc=1)
    (told,) = ran.events("unsupported")
    assert told.fields["reason"] == "several threads train at once"
    steps = ran.ranks[0].steps
    assert [step.n for step in steps] == list(range(len(steps)))
    assert len(steps) >= 20
    assert not ran.ranks[0].suspicions
