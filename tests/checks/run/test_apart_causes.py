"""What a finding says of gradients and weights that part ways, where the run or the text shows what did it."""

from __future__ import annotations

from typing import Any

from grader.model.finding import SEEN_RIGHT
from grader.model.grade import State

APART = (1.0, 0.5)


def wrapped(tell: Any, **step: Any) -> Any:
    """Two ranks, wrapped and trained through the wrapper, whose first tensor has a gradient of the rank's own."""
    story = tell.Story()
    story.group()
    for rank in range(2):
        for _ in range(4):
            story.step(rank, (1.0, 0.5 + rank, 0.1), backwards=1, wraps=(0,), **step)
    return story


IGNORES = """import torch
from torch.nn.parallel import DistributedDataParallel as DDP

names = [f"{m}.{n}" for m, part in net.named_modules() if m for n in part.state_dict()]
DDP._set_params_and_buffers_to_ignore_for_model(net, names)
model = DDP(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_parameters_that_ddp_was_told_to_leave_alone(tell: Any) -> None:
    story = wrapped(tell)
    story.wrap(line=6, ignored=("fc.weight",))
    story.text = IGNORES
    for rank in range(2):
        story.final(rank, (1.0, 2.0 + rank, 3.0))
    (hit,) = story.observation("GRAD001").hits
    assert [place.line for place in hit.where][:2] == [5, 4]
    assert "`train.py:5` told DDP to leave 1 parameter alone (`fc.weight`)" in hit.message
    assert "1 of the model's 3 tensors became each rank's own, and the others stayed equal" in hit.message
    assert "`part.state_dict()` at `train.py:4` has the parameters, too" in hit.hint
    assert "named_buffers()" in hit.hint


def test_names_that_are_written_out(tell: Any) -> None:
    story = wrapped(tell)
    story.wrap(line=4, ignored=("fc.weight", "fc.bias"))
    story.text = """from torch.nn.parallel import DistributedDataParallel

net._ddp_params_and_buffers_to_ignore = ["fc.weight", "fc.bias"]
model = DistributedDataParallel(net)
"""
    (hit,) = story.observation("GRAD001").hits
    assert hit.where[0].line == 3
    assert "leave 2 parameters alone" in hit.message
    assert "DDP has to average" in hit.hint


STEPS_IN_A_HOOK = """import torch
from torch.nn.parallel import DistributedDataParallel

model = {wrap}
optimizers = {{p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}}


def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(update)
for x, y in batches:
    torch.nn.functional.cross_entropy(model(x), y).backward()
"""


def test_an_optimizer_that_steps_within_the_backward_pass(tell: Any) -> None:
    story = wrapped(tell, within=True)
    story.wrap(line=4)
    story.text = STEPS_IN_A_HOOK.format(wrap="DistributedDataParallel(net)")
    (hit,) = story.observation("GRAD001").hits
    assert [place.line for place in hit.where][:2] == [14, 9]
    assert "`train.py:9` steps within the backward pass" in hit.message
    assert "before DDP exchanges it" in hit.message
    assert "leave out the hook of `train.py:14`" in hit.hint
    assert hit.details[SEEN_RIGHT] == ["GRAD002", "GRAD003"]


def test_the_same_without_a_wrapper(tell: Any) -> None:
    story = wrapped(tell, within=True)
    story.text = STEPS_IN_A_HOOK.format(wrap="net")
    (hit,) = story.observation("GRAD001").hits
    assert "`train.py:9` steps within the backward pass" in hit.message
    assert "The model has to be wrapped, too" in hit.hint


def test_a_hook_that_the_text_does_not_show(tell: Any) -> None:
    story = wrapped(tell, within=True)
    story.wrap()
    assert "not in a hook" in story.observation("GRAD001").hits[0].hint


def test_no_advice_to_call_a_wrapper_that_was_called(tell: Any) -> None:
    story = wrapped(tell)
    story.wrap()
    (hit,) = story.observation("GRAD001").hits
    assert "Every forward pass went through the wrapper" in hit.hint
    assert "each rank trains a model of its own" in hit.message


REDUCES_IN_A_HELPER = """import torch
import torch.distributed as dist


def average(value):
    dist.all_reduce(value)
    value /= dist.get_world_size()
    return value


for x, y in batches:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    {reduce}
    {loss}.backward()
    optimizer.step()
"""


def test_a_loss_that_a_function_reduces(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch(tell.strided(96, 2), grads=lambda rank, step: (1.0 + step + 0.1 * rank, 0.5, 1e-9))
    for reduce, loss in (("average(loss)", "loss"), ("mean = average(loss)", "mean")):
        story.text = REDUCES_IN_A_HELPER.format(reduce=reduce, loss=loss)
        (hit,) = story.observation("GRAD001").hits
        assert hit.where[0].line == 13
        assert "`train.py:13` averages the loss, not the gradients" in hit.message
        assert "leave out `average(loss)` (`train.py:13`)" in hit.hint
    story.text = REDUCES_IN_A_HELPER.format(reduce="average(loss.detach().clone())", loss="loss")
    assert "averages the loss" not in story.observation("GRAD001").hits[0].message


def test_a_module_that_functional_call_is_given(tell: Any) -> None:
    story = wrapped(tell)
    story.wrap(line=5)
    for rank in range(2):
        story.ranks[rank].event("bypass", 8, wrap=0, n=0)
    story.text = """from functools import partial
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(net)
run = partial(functional_call, model.module)
params = dict(model.module.named_parameters())
loss_of(run(params, x), y).backward()
"""
    (hit,) = story.observation("GRAD002").hits
    assert [place.line for place in hit.where] == [6, 8, 5]
    assert "`train.py:6` gives `functional_call` the module inside" in hit.message
    assert "keep the wrapper and call it" in hit.hint


SENDS_LAZILY = """import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.Linear(6, 3)
{send}
for x, y in batches:
    loss_of(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    optimizer.step()
"""


def test_weights_that_an_iterator_would_have_sent(tell: Any) -> None:
    story = tell.Story()
    story.group()
    for rank in range(2):
        for step in range(4):
            story.step(rank, (*APART, 0.1), backwards=1)
            story.params(rank, step, (1.0 + rank, 2.0, 3.0))
    story.text = SENDS_LAZILY.format(send="map(lambda p: dist.broadcast(p.data, 0), model.parameters())")
    (hit,) = story.observation("GRAD007").hits
    assert [place.line for place in hit.where] == [6]
    assert "`train.py:6` calls no `broadcast`" in hit.message
    assert "put `list(…)` around it at `train.py:6`" in hit.hint
    story.text = SENDS_LAZILY.format(
        send="list(map(lambda p: dist.broadcast(p.data, 0), model.parameters()))"
    )
    assert "calls no" not in story.observation("GRAD007").hits[0].message


def test_a_model_that_is_wrapped_twice(tell: Any) -> None:
    story = tell.honest()
    assert "twice" not in story.observation("GRAD008").reason
    story.text = """import torch
from torch.nn.parallel import DistributedDataParallel


def prepare(model):
    return DistributedDataParallel(model.to(device))


class Trainer:
    def __init__(self, model):
        self.model = prepare(model)


trainer = Trainer(prepare(net))
torch.save(trainer.model.module.state_dict(), "model.pt")
"""
    for rank in story.ranks:
        rank.fields["wraps"] = []
        rank.fields["saves"] = []
    story.wrap(line=6)
    story.wrap(line=6, id=1, module="DistributedDataParallel")
    story.save(0, "model.pt", prefix="module.", line=15)
    look = story.observation("GRAD008")
    assert look.state is State.CONTRADICTED
    (hit,) = look.hits
    assert [place.line for place in hit.where] == [11, 14, 6]
    assert "`train.py:11` wraps a model in DDP that `train.py:14` has wrapped already" in hit.message
    assert "leave out `prepare(model)`" in hit.hint
    (hit,) = story.observation("IO005").hits
    assert [place.line for place in hit.where] == [15, 11, 14]
    assert "what one `.module` leaves of a model in two wrappers" in hit.message
    assert "state_dict" not in hit.hint, "that is what the script does"
