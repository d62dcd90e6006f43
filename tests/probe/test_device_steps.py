"""Losses and times of steps that a device works off later, and silence while a CUDA graph is captured.

No device is needed: its queue is imitated by a clock, a capture by a flag, at the only places where the probe asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from grader.checks.run.optimisation.replayed_steps import replays
from grader.probe.trace import events
from tests.probe.warm_ranks import Ran

QUEUE = """
import json, time
import grader.probe.steps.device_steps as device_steps

class Queued:
    # What was put into the queue is done a while later; to ask for it sooner would mean to wait.
    def record(self, _stream):
        self.t = time.monotonic() + {delay_s}
    def query(self):
        return time.monotonic() >= self.t
    def elapsed_time(self, other):
        assert self.query() and other.query()
        return 1000 * (other.t - self.t)

device_steps.on_device = lambda tensor: True
device_steps._event, device_steps._stream = Queued, lambda device: None
device_steps._buffers = lambda device: (torch.zeros(8), torch.zeros(8))
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for n in range(30):
    optimizer.zero_grad()
    loss = cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,)))
    loss.backward()
    time.sleep(0.002)
    optimizer.step()
    losses.append(loss.item())
time.sleep({rest_s})
print(json.dumps(losses))
"""


def test_losses_and_times_come_once_the_device_has_them(ranks: Callable[..., Ran]) -> None:
    ran = ranks(QUEUE.format(delay_s=0.005, rest_s=0.1), nproc=1)
    steps = ran.ranks[0].steps
    assert [step.loss for step in steps] == pytest.approx(json.loads(ran.stdout[0]))
    assert all(step.device_s is not None and 0.002 <= step.device_s < 1 for step in steps)
    told = [line["later"]["n"] for line in ran.lines[0] if line.get("later")]
    assert all(len(numbers) % 8 == 0 for numbers in told[:-1])
    assert sorted(n for numbers in told for n in numbers) == list(range(30))
    assert ran.events(events.UNSUPPORTED) == ()


def test_a_device_that_is_far_behind_is_not_waited_for(ranks: Callable[..., Ran]) -> None:
    ran = ranks(QUEUE.format(delay_s=600, rest_s=0), nproc=1)
    steps = ran.ranks[0].steps
    assert len(steps) == 30
    assert {(step.loss, step.device_s) for step in steps} == {(None, None)}
    assert ran.ranks[0].ended


CAPTURE = """
import json
from torch.utils._python_dispatch import TorchDispatchMode

class Listed(TorchDispatchMode):
    ops = []
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.ops.append(str(function))
        return function(*args, **(kwargs or {}))

model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    cross_entropy(model(torch.ones(4, 6)), torch.zeros(4, dtype=torch.int64)).backward()
    optimizer.step()

step()
from grader.probe.hooks import patches
torch.cuda._initialized, patches._captures = True, lambda: True
with Listed() as listed:
    for _ in range(3):
        step()
torch.cuda._initialized = False
step()
print(json.dumps(listed.ops))
"""


def test_nothing_is_asked_of_tensors_while_a_graph_is_captured(ranks: Callable[..., Ran]) -> None:
    watched, alone = ranks(CAPTURE, nproc=1), ranks(CAPTURE, nproc=1, probe=False)
    assert json.loads(watched.stdout[0]) == json.loads(alone.stdout[0])
    captured = [event.fields["what"] for event in watched.events(events.CAPTURED)]
    assert {"forward", "backward", "step"} <= set(captured)
    assert len(captured) == len(set(captured))
    assert replays(watched.ranks[0])
    assert [step.n for step in watched.ranks[0].steps] == [0, 1]
    assert watched.events(events.UNSUPPORTED) == ()


def test_a_script_that_only_claims_a_device_is_watched_all_the_same(ranks: Callable[..., Ran]) -> None:
    text = CAPTURE.replace(
        "torch.cuda._initialized, patches._captures = True, lambda: True", "torch.cuda._initialized = True"
    )
    ran = ranks(text, nproc=1)
    assert not replays(ran.ranks[0])
    assert ran.events(events.END)[0].fields["backwards"] == 5


def test_a_scaled_loss_is_told_as_it_was(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        import json
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        losses = []
        for n in range(5):
            optimizer.zero_grad()
            loss = cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,)))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        print(json.dumps(losses))
        """,
        nproc=1,
    )
    assert [step.loss for step in ran.ranks[0].steps] == json.loads(ran.stdout[0])
