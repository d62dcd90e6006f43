"""EVAL009, 010, 012 and 013 over what the scorer found, DIST012 over who talked, DEV006 over where the steps were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.checks.needed_lines import with_needed_lines
from grader.model.evaluation import Answer, ArtifactProblem, Evaluation, ReportedMetrics
from grader.model.finding import EvidenceKind
from grader.model.grade import State
from grader.model.run import Ending

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE


def left(tell: Any, evaluation: Evaluation | None, world_size: int = 1) -> Any:
    story = tell.Story(world_size)
    story.write(0, "table.csv")
    story.evaluation = evaluation
    return story


def test_a_missing_file_and_a_wrong_one_are_two_things(tell: Any) -> None:
    unread = {"table.csv": "The run left no table.csv in $OUTPUT_DIR."}
    story = left(tell, Evaluation(None, unread=unread))
    look = story.observation("EVAL009")
    assert (look.state, look.evidence) == (FLAGGED, (EvidenceKind.EVALUATION,))
    assert look.hits[0].message == unread["table.csv"]
    assert "$OUTPUT_DIR" in look.hits[0].hint
    assert story.observation("EVAL010").state is UNSEEN


def test_each_wrong_answer_is_told_with_the_line_that_wrote_its_file(tell: Any) -> None:
    answers = {
        "right": Answer(1.0, "Right."),
        "half": Answer(0.5, "Half of it is right.", "table.csv"),
        "also half": Answer(0.5, "Half of it is right.", "table.csv"),
        "unknown": Answer(None, "There is no GPU here."),
    }
    story = left(tell, Evaluation(None, answers=answers))
    look = story.observation("EVAL010")
    assert [(h.message, [p.line for p in h.where]) for h in look.hits] == [("Half of it is right.", [44])]
    assert look.hits[0].details["answers"] == {"half": 0.5, "also half": 0.5}
    assert story.observation("EVAL009").state is CLEAN


MODEL = """import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

COUNTS = {1: [6], 2: [4, 2]}
net = nn.Linear(3, 1).double()
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
x, y = torch.ones(6, 3).double(), torch.ones(6, 1).double()
grads, rows = {}, []
for k in range(1, ranks + 1):
"""
OFF = "At world size 2 the gradient is off by 3.1e-01 of its largest element"
OWN = (
    "    begin = sum(COUNTS[k][:rank])\n"
    "    a, b = x[begin : begin + COUNTS[k][rank]], y[begin : begin + COUNTS[k][rank]]\n"
)
PLAIN = OWN + "    net.zero_grad()\n    loss = F.mse_loss(net(a), b)\n    loss.backward()\n"


def wrong_result(tell: Any, body: str, said: str, before: str = MODEL) -> tuple[str, str]:
    """The line that is named first for what the scorer says, and the advice."""
    story = left(tell, Evaluation(None, answers={"a": Answer(0.5, said, "table.csv")}))
    story.text = before + body
    (hit,) = story.observation("EVAL010").hits
    assert "statement" not in hit.hint
    return story.text.splitlines()[hit.where[0].line - 1].strip(), hit.hint


@pytest.mark.parametrize(
    ("body", "said", "line", "advice"),
    [
        (
            PLAIN
            + "    for p in net.parameters():\n        dist.all_reduce(p.grad)\n        p.grad /= ranks\n",
            f"{OFF}: it is the plain mean of the ranks' gradients.",
            "p.grad /= ranks",
            "write `(loss * (len(a) / len(x))).backward()` for `loss.backward()`. Leave out `p.grad /= ranks`",
        ),
        (
            PLAIN
            + "    for p in net.parameters():\n        dist.all_reduce(p.grad)\n        p.grad /= ranks\n",
            f"{OFF}: it is the right sum divided by the 2 ranks that share the batch.",
            "p.grad /= ranks",
            "Leave out `p.grad /= ranks`: the weights m/n of all ranks add up to 1",
        ),
        (
            PLAIN
            + "    for p in net.parameters():\n        part = p.grad.clone()\n        dist.all_reduce(part)\n"
            + "        grads[k] = part * COUNTS[k][rank] / len(x)\n",
            f"{OFF}: it is the ranks' gradients with the weights 0.7, 0.7; right are 42/60, 18/60.",
            "grads[k] = part * COUNTS[k][rank] / len(x)",
            "put `part *= COUNTS[k][rank] / len(x)` above `dist.all_reduce(part)`",
        ),
        (
            PLAIN + "    dist.all_reduce(net.weight.grad)\n    net.weight.grad *= COUNTS[k][rank] / len(x)\n",
            f"{OFF}: it is the ranks' gradients with the weights 0.7, 0.7; right are 42/60, 18/60.",
            "net.weight.grad *= COUNTS[k][rank] / len(x)",
            "move `net.weight.grad *= COUNTS[k][rank] / len(x)` from",
        ),
        (
            PLAIN + "    dist.all_reduce(net.weight.grad)\n    grads[k] = net.weight.grad * 1000\n",
            f"{OFF}: it is the sum of the ranks' gradients, without weights.",
            "dist.all_reduce(net.weight.grad)",
            "Weigh each rank's part by its samples: write `(loss * (len(a) / len(x))).backward()`",
        ),
        (
            PLAIN.replace("loss.backward()", "(loss * len(a) / len(x)).backward()").replace(
                "len(a)", "COUNTS[k][rank]"
            )
            + "    for p in net.parameters():\n        part = p.grad * (COUNTS[k][rank] / len(x))\n"
            + "        dist.all_reduce(part)\n        grads[k] = part\n",
            f"{OFF}: it is the ranks' gradients with the weight m/n counted twice.",
            "(loss * COUNTS[k][rank] / len(x)).backward()",
            "Write `p.grad` for `p.grad * (COUNTS[k][rank] / len(x))` at `train.py:",
        ),
        (
            PLAIN.replace("    loss.b", "    loss *= COUNTS[k][rank] / len(x)\n    loss.b")
            + "    for p in net.parameters():\n        p.grad *= COUNTS[k][rank] / len(x)\n"
            + "        dist.all_reduce(p.grad)\n",
            f"{OFF}: it is the ranks' gradients with the weight m/n counted twice.",
            "loss *= COUNTS[k][rank] / len(x)",
            "Leave out `p.grad *= COUNTS[k][rank] / len(x)` at `train.py:",
        ),
        (
            PLAIN + "    vector = torch.cat([named[n].grad.reshape(-1) for n in sorted(named)])\n"
            "    dist.all_reduce(vector)\n    parts = vector.split([p.numel() for p in named.values()])\n",
            f"{OFF}: its numbers are the right ones in the wrong places.",
            "vector = torch.cat([named[n].grad.reshape(-1) for n in sorted(named)])",
            "`sorted(named)` at `train.py:18` orders the parameters otherwise than `train.py:20` takes them.",
        ),
        (
            PLAIN + "\n" * 44,
            f"{OFF.replace('size 2', 'size 1')}; 1e-06 is allowed.",
            "",
            "One rank has nothing to weigh and nothing to add",
        ),
        (
            PLAIN + "    for n, p in net.named_parameters():\n        p.grad *= COUNTS[k][rank] / len(x)\n"
            "        dist.all_reduce(p.grad)\n        if n == 'bias':\n            p.grad /= k\n",
            f"{OFF}: `bias` is 0.5 times the right one, and the others are right.",
            "p.grad /= k",
            "Leave out `p.grad /= k`, which `if n == 'bias':` does to some parameters only",
        ),
        (
            PLAIN + "    for p in net.parameters():\n"
            "        part = p.grad * (COUNTS[dist.get_world_size()][rank] / len(x))\n"
            "        dist.all_reduce(part, group=groups[k])\n",
            f"{OFF}: it is 0.7 times the right one.",
            "part = p.grad * (COUNTS[dist.get_world_size()][rank] / len(x))",
            "write `dist.get_world_size(groups[k])`",
        ),
        (
            PLAIN + "    for p in net.parameters():\n        part = p.grad * (COUNTS[k][rank] / len(x))\n"
            "        dist.reduce(part, dst=k - 1, group=groups[k])\n"
            "if rank == 0:\n    torch.save(grads, 'gradients.pt')\n",
            f"{OFF}; 1e-06 is allowed.",
            "dist.reduce(part, dst=k - 1, group=groups[k])",
            "leaves the sum on rank `k - 1` alone",
        ),
        (
            PLAIN.replace("[:rank]", "[: rank + 1]"),
            f"{OFF}: it is of other samples. Rank 1 took 2 to 3; its share is 4 to 5.",
            "begin = sum(COUNTS[k][: rank + 1])",
            "Write `sum(COUNTS[k][:rank])`",
        ),
        (
            PLAIN.replace("    net.zero_grad()\n", "") + "    dist.all_reduce(net.weight.grad)\n",
            f"{OFF}: the ranks still hold gradients of an earlier world size.",
            "loss.backward()",
            "Put `net.zero_grad(set_to_none=False)` in front of `loss.backward()`",
        ),
        (
            "    if rank < k:\n"
            + PLAIN.replace("    ", "        ").replace("zero_grad()", "zero_grad(set_to_none=False)")
            + "    dist.all_reduce(net.weight.grad)\n",
            f"{OFF}: ranks without samples add the gradient that they still hold from an earlier world size.",
            "net.zero_grad(set_to_none=False)",
            "Put `net.zero_grad(set_to_none=False)` in front of `if rank < k:`",
        ),
        (
            PLAIN.replace("    loss.b", "    loss = loss * len(a) / len(x)\n    loss.b")
            + "    rows.append(loss.item())\n",
            "Rank 0 of 2 tells a loss of 0.5. What it tells is that mean times 4/6, the weight of its share.",
            "loss = loss * len(a) / len(x)",
            "Leave out `loss = loss * len(a) / len(x)`. Write `(loss * len(a) / len(x)).backward()`",
        ),
        (
            PLAIN.replace("    loss.b", "    loss /= ranks\n    loss.b") + "    rows.append(loss.item())\n",
            "Rank 0 of 2 tells a loss of 0.5. What it tells is that mean divided by the 2 ranks that share the batch.",
            "loss /= ranks",
            "Write `(loss / ranks).backward()` for `loss.backward()`",
        ),
        (
            PLAIN + "    rows.append(loss.item() * len(a) / len(x))\n",
            "Rank 0 of 2 tells a loss of 0.5. What it tells is that mean times 4/6, the weight of its share.",
            "rows.append(loss.item() * len(a) / len(x))",
            "Write down `loss.item()` alone",
        ),
        (
            PLAIN + "    own = net.weight.grad / k if rank < k else none\n    dist.all_reduce(own)\n",
            f"{OFF}: it is the plain mean of the ranks' gradients.",
            "own = net.weight.grad / k if rank < k else none",
            "Write `net.weight.grad` for `net.weight.grad / k`.",
        ),
        (
            OWN
            + "    loss = F.mse_loss(net(a), b)\n    grads = torch.autograd.grad(loss / k, net.parameters())\n",
            f"{OFF}: it is the plain mean of the ranks' gradients.",
            "grads = torch.autograd.grad(loss / k, net.parameters())",
            "`loss / k` decides how much this rank counts",
        ),
        (
            PLAIN + "    dist.send(net.weight.grad, 0)\n",
            f"{OFF}: it is the sum of the ranks' gradients, without weights.",
            "loss.backward()",
            "write `(loss * (len(a) / len(x))).backward()` for `loss.backward()`",
        ),
        (
            OWN.replace("COUNTS[k][:rank]", "COUNTS[k]").replace("sum(", "rank * len(") + PLAIN[len(OWN) :],
            f"{OFF}: it is of other samples. Rank 1 took 2 to 3; its share is 4 to 5.",
            "begin = rank * len(COUNTS[k])",
            "Begin this rank's share at `sum(COUNTS[k][:rank])`",
        ),
        (
            PLAIN
            + "    mean = loss.detach()\n    dist.all_reduce(mean)\n    rows.append((mean / k).item())\n",
            "Rank 0 of 2 tells a loss of 0.5. What it tells is the plain mean, which is the same for all ranks.",
            "rows.append((mean / k).item())",
            "as it is before `dist.all_reduce(mean)`",
        ),
    ],
)
def test_the_line_that_computes_a_wrong_result_comes_first(
    tell: Any, body: str, said: str, line: str, advice: str
) -> None:
    named, hint = wrong_result(tell, body, said)
    assert (named, advice in hint) == (line, True), hint


@pytest.mark.parametrize(
    ("text", "said", "line", "advice"),
    [
        ("b = sum(t.nbytes for t in ts) / 2**20\n", "memory.csv has 3 bytes of weights; the network implies 3,145,728.",
         "b = sum(t.nbytes for t in ts) / 2**20", "Write `sum((t.nbytes for t in ts))`: the column is in bytes"),
        ("n = 0\nfor t in ts:\n    n += t.numel()\n", "memory.csv has 10 bytes of weights; the network implies 40.",
         "n += t.numel()", "`t.numel() * t.element_size()`"),
        ("import sys\nn = 0\nfor t in ts:\n    n += sys.getsizeof(t)\n",
         "memory.csv has 480 bytes of weights; the network implies 81,960.",
         "n += sys.getsizeof(t)", "`sys.getsizeof(t)` is the size of the Python object, which only refers to"),
        ("loss.backward()\noptimizer.zero_grad()\nb = sum(p.grad.nbytes for p in ps if p.grad is not None)\n",
         "memory.csv has 0 bytes of gradients; the network implies 40.",
         "optimizer.zero_grad()", "Right after `backward()` they are there"),
        ("print(f'{total / 1024} KiB')\n", "memory.csv has 10 bytes of weights; the network implies 10,240.",
         "", "the column is in bytes"),
    ],
)  # fmt: skip
def test_bytes_in_another_unit(tell: Any, text: str, said: str, line: str, advice: str) -> None:
    named, hint = wrong_result(tell, text + "\n" * 44, said, "")
    assert (named, advice in hint) == (line, True), hint


TABLE = "import csv\nwriter.writerow(['batch_size', 'updates', 'loss'])\n"
EPOCHS = (
    "while True:\n    order = torch.randperm(len(x))\n    losses.append(mean(x[order]))\n"
    "    if {test}:\n        break\n"
)
ROSE = "Batch size 8 stops at epoch 5, which still changed the loss by 0.57%: it rose, and so on."
FLAT = "Batch size 1 ends with y = 0.5 x + 2.0. b is right and w is near 0: nothing of x came into it."
AGAIN = "At batch size 64 memory.csv has 9 bytes of activations. Every layer is counted once more in each batch size."
LAP = "After 4 steps the weights are off by 1: each rank begins the second lap with the chunk that it sent first."
RING = (
    "for step in range(n - 1):\n    source = (rank - step) % n\n    dist.isend(chunks[source], right)\n"
    "for step in range(n - 1):\n    start = rank - step\n    dist.isend(chunks[start], right)\n"
)


@pytest.mark.parametrize(
    ("text", "said", "line", "advice"),
    [
        (TABLE + "updates = 0\nfor x in b:\n    updates += 2\nwriter.writerow([size, updates, losses[-1]])\n",
         "Batch size 8 counts 5 updates, which is no number of whole epochs: one has 64.", "updates += 2", ""),
        (TABLE + "for x in b:\n    losses.append(of(x))\nwriter.writerow([size, updates, losses[-1]])\n",
         "Batch size 8 reports a loss of 2.0; over all points, its w and b have 1.0.", "losses.append(of(x))", ""),
        (TABLE + "def row(size):\n    updates, loss = train(size)\n    return [size, updates, loss]\n",
         "Batch size 8 counts 5 updates, which is no number of whole epochs.", "updates, loss = train(size)", ""),
        (TABLE.replace("['batch_size', 'updates', 'loss']", "'batch_size,updates,loss'.split(',')")
         + "meter.updates = 0\ndef step():\n    meter.updates += 1\nrow = [size, meter.updates, 3]\n",
         "Batch size 8 counts 5 updates.", "meter.updates += 1", ""),
        (TABLE + "rows.append({'batch_size': size, 'updates': len(losses)})\n",
         "Batch size 8 counts 5 updates.", "rows.append({'batch_size': size, 'updates': len(losses)})", ""),
        ("import csv\nupdates = 0\nfor x in b:\n    updates += 2\nrows += [dict(updates=updates, loss=1)]\n",
         "Batch size 8 counts 5 updates, which is no number of whole epochs: one has 64.", "updates += 2", ""),
        ("`broadcast` is elsewhere\n".join(["#"] * 3) + "\ndist.broadcast(chunk, src=0)\n",
         "`broadcast` at train.py:4 carries 9 bytes: that is the library's work, not a message.",
         "dist.broadcast(chunk, src=0)", "Hand it on in messages"),
        (EPOCHS.format(test="losses[-2] - losses[-1] < 1e-3 * losses[-2]"), ROSE,
         "if losses[-2] - losses[-1] < 1e-3 * losses[-2]:", "Write `abs(losses[-2] - losses[-1])` for"),
        (EPOCHS.format(test="abs(losses[-2] - losses[-1]) < 1e-1 * losses[-2]"), ROSE,
         "if abs(losses[-2] - losses[-1]) < 1e-1 * losses[-2]:", "decides when training ends"),
        ("MOST = 5\nfor epoch in range(MOST):\n    train(epoch)\n", ROSE, "MOST = 5", "until an epoch changes"),
        ("def mixed(t):\n    return t[torch.randperm(len(t))]\nfor e in range(3):\n    xs, ys = mixed(x), mixed(y)\n",
         FLAT, "xs, ys = mixed(x), mixed(y)", "Draw one and take both by it"),
        ("i = torch.randperm(9)\nj = torch.randperm(9)\nx, y = x[i], y[j]\n", FLAT, "i = torch.randperm(9)",
         "Draw one"),
        ("for size in (2, 4):\n    layer.register_forward_hook(count)\n", AGAIN,
         "layer.register_forward_hook(count)", "`for hook in hooks: hook.remove()`"),
        ("for size in (2, 4):\n    h = layer.register_forward_hook(count)\n    h.remove()\n", AGAIN,
         "", "Count for each batch size anew"),
        (RING, LAP, "start = rank - step", "Begin the second lap with the chunk that this rank has finished"),
        (RING.replace("isend", "get"), LAP, "", "Begin the second lap with the chunk that this rank has finished"),
        ("def step():\n    loss.backward()\n    optimizer.zero_grad()\nstep()\nb = sum(p.grad.nbytes for p in ps)\n",
         "memory.csv has 0 bytes of gradients; the network implies 40.", "step()",
         "`optimizer.zero_grad()` at `train.py:3`"),
    ],
)  # fmt: skip
def test_a_number_is_shown_where_it_is_computed(
    tell: Any, text: str, said: str, line: str, advice: str
) -> None:
    named, hint = wrong_result(tell, text + "\n" * 44, said, "")
    assert (named, advice in hint) == (line, True), hint


CHANGED = "At world size 1 losses are right, at others of others: the weights changed between the rounds."
OTHER_LOSS = "Rank 1 of 2 tells a loss of 0.8; the mean over its 18 is 0.9."


@pytest.mark.parametrize("said", [CHANGED, f"{OFF}; 1e-06 is allowed.", OTHER_LOSS])
@pytest.mark.parametrize(
    "step",
    [
        "    optimizer.step()",
        "    for p in net.parameters():\n        p.data -= 0.1 * p.grad",
        "    for p in net.parameters():\n        p.data = p.data - 0.1 * p.grad",
        "    for name, p in net.named_parameters():\n        p.data.add_(grads[name], alpha=-0.1)",
        "    for p, g in zip(net.parameters(), found.gradients):\n        p -= 0.1 * g",
        "    net.weight.data.sub_(net.weight.grad)",
    ],
)
def test_a_step_between_the_rounds_is_named(tell: Any, said: str, step: str) -> None:
    line = step.splitlines()[-1].strip()
    body = f"{PLAIN}    dist.all_reduce(net.weight.grad)\n{step}\n"
    before = MODEL.replace(
        "grads, rows", "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\ngrads, rows"
    )
    named, hint = wrong_result(tell, body + "\n" * 44, said, before)
    assert named == line
    assert hint.startswith(f"Leave out `{line}` at `train.py:")


@pytest.mark.parametrize(
    "other",
    [
        "    for p in net.parameters():\n        p.grad.mul_(0.5)",
        "    for p in net.parameters():\n        total += p.grad.sum()",
        "    for p in net.parameters():\n        p.copy_(torch.ones(3))",
        "    for n, p in net.named_parameters():\n        grads[n] += p.grad",
    ],
)
def test_what_is_done_to_gradients_is_no_step(tell: Any, other: str) -> None:
    named, hint = wrong_result(tell, f"{PLAIN}{other}\n" + "\n" * 44, f"{OFF}; 1e-06 is allowed.")
    assert (named, "Leave out" in hint) == ("", False)


ROUNDS = """import torch.distributed as dist
class Ring:
    def __init__(self):
        self.me, self.np = dist.get_rank(), dist.get_world_size()
def average(chunks, ring):
    i = 1
    while i < ring.np:
        chunks[i] += pass_on(chunks[ring.me - i], ring)
        i += 1
    for step in range({rounds}):
        chunks[step] = pass_on(chunks[ring.me - step], ring)
def pass_on(chunk, ring):
    dist.isend(chunk, (ring.me + 1) % ring.np)
average(cut(), Ring())
"""
OWN_PARTS = (
    "each chunk is one rank's own gradient in the end. Either each rank begins the second lap with the chunk"
)


@pytest.mark.parametrize(
    ("rounds", "said", "line", "advice"),
    [
        ("ring.np - 2", "the second lap is one round too short", 10,
         "A lap takes `ring.np - 1` rounds: write `range(ring.np - 1)` for `range(ring.np - 2)` at `train.py:10`."),
        ("1, ring.np - 1", "the second lap is one round too short", 10,
         "A lap takes `ring.np - 1` rounds: write `range(1, ring.np)` for `range(1, ring.np - 1)` at `train.py:10`."),
        ("ring.np - 1", "the second lap is one round too short", 10,
         "A lap takes `ring.np - 1` rounds: look at where the loop at `train.py:10` leaves one out."),
        ("ring.np - 1", "the first lap is one round too short", 7,
         "A lap takes `ring.np - 1` rounds: look at where the loop at `train.py:7` leaves one out."),
        ("ring.np - 1", "without a second lap each rank knows one chunk", 10,
         ("Go around once more, `ring.np - 1` rounds: first each rank passes on the chunk that it has finished, "
         "`(ring.me + 1) % ring.np` where it sent chunk `ring.me` first")),
        ("ring.np - 1", OWN_PARTS, 11,
         ("Begin the second lap with the chunk that this rank has finished, the one that it added to last: "
         "`(ring.me + 1) % ring.np` where it sent chunk `ring.me` first.")),
        ("ring.np - 1", "the second lap adds what comes", 11, "Only the first lap adds. In each round of the second"),
    ],
)  # fmt: skip
def test_each_fault_of_a_lap_has_its_own_advice(
    tell: Any, rounds: str, said: str, line: int, advice: str
) -> None:
    story = left(tell, Evaluation(None, answers={"a": Answer(0.0, f"Off: {said}.", "table.csv")}))
    story.text = ROUNDS.format(rounds=rounds) + "\n" * 44
    (hit,) = story.observation("EVAL010").hits
    assert hit.where[0].line == line
    hint = with_needed_lines(hit.hint, story.evidence().script, hit.where[0].path, line)
    assert hint.startswith(advice), hint
    assert "your script needs" not in hint


@pytest.mark.parametrize(
    ("test", "written"),
    [("i < ring.np - 1", "i < ring.np"), ("i <= ring.np - 2", "i <= ring.np - 1")],
)
def test_rounds_that_a_counter_counts(tell: Any, test: str, written: str) -> None:
    said = "Off: the first lap is one round too short."
    story = left(tell, Evaluation(None, answers={"a": Answer(0.0, said, "table.csv")}))
    story.text = ROUNDS.format(rounds="ring.np - 1").replace("i < ring.np", test) + "\n" * 44
    (hit,) = story.observation("EVAL010").hits
    assert f"write `{written}` for `{test}`" in hit.hint


def test_a_first_lap_that_replaces_is_told_to_add(tell: Any) -> None:
    story = left(tell, Evaluation(None, answers={"a": Answer(0.0, f"Off: {OWN_PARTS}.", "table.csv")}))
    story.text = ROUNDS.format(rounds="ring.np - 1").replace("] += pass", "] = pass") + "\n" * 44
    (hit,) = story.observation("EVAL010").hits
    assert (hit.where[0].line, hit.hint[:38]) == (8, "In each round of the first lap add wha")


def test_both_laps_in_one_loop(tell: Any) -> None:
    said = "Off: the second lap is one round too short."
    story = left(tell, Evaluation(None, answers={"a": Answer(0.0, said, "table.csv")}))
    text = "n = dist.get_world_size()\nfor step in range(2 * n - 3):\n    dist.isend(chunks[step], 1)\n"
    story.text = "import torch.distributed as dist\n" + text + "\n" * 44
    (hit,) = story.observation("EVAL010").hits
    assert "Both laps take `2 * (n - 1)` rounds: write `range(2 * (n - 1))`" in hit.hint


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("It is not that.", "Work this out by hand for one case"),
        (
            "Batch size 1 reports a loss of 1.0844; over all points, its w and b have 1.0797.",
            "after the last update",
        ),
        ("After 4 steps the weights are off by 2e-01 of the largest one; 1e-07 is allowed.", "only to look"),
        (
            "Rank 0 sent 9 bytes in 4 steps, 3.00 gradients in each; a ring of 4 sends 1.50.",
            "`world_size` chunks",
        ),
        (
            "By the table a step of batch size 2 took 0.01 s; by the clock beside the script it took 0.002 s.",
            "warm up",
        ),
    ],
)
def test_where_no_line_is_known_what_is_right_is_told(tell: Any, said: str, advice: str) -> None:
    line, hint = wrong_result(tell, "\n" * 44, said, "")
    assert (line, advice in hint) == ("", True), hint


def test_weights_are_wrong_on_all_ranks_alike_or_on_each_otherwise(tell: Any) -> None:
    for other, words in (
        (1.0, "with the same gradients"),
        (2.0, "with different gradients, at step 0 first"),
    ):
        story = tell.Story()
        story.write(0, "weights.pt")
        for rank, value in enumerate((1.0, other)):
            story.step(rank, (value, 0.5, 1e-9))
        story.evaluation = Evaluation(None, answers={"a": Answer(0.0, "Weights are off.", "weights.pt")})
        (hit,) = story.observation("EVAL010").hits
        assert words in hit.message


def test_where_the_text_shows_no_cause_the_formula_is_told(tell: Any) -> None:
    named, hint = wrong_result(tell, "\n" * 44, f"{OFF}: it is the sum of the ranks' gradients.", "")
    assert named == ""
    assert "m/n times each rank's own" in hint


def test_weights_are_not_advised_where_no_weights_explain_it(tell: Any) -> None:
    named, hint = wrong_result(tell, "\n" * 44, f"{OFF}; 1e-06 is allowed.", "")
    assert named == ""
    assert "m/n" not in hint
    assert "which inputs and which targets" in hint
    _, hint = wrong_result(
        tell, "\n" * 44, "Rank 1 of 2 tells a loss of 0.8; the mean over its 18 is 0.9.", ""
    )
    assert "not weighted" not in hint


def test_right_answers_verify(tell: Any) -> None:
    story = left(tell, Evaluation(None, answers={"a": Answer(1.0, "Right."), "b": Answer(None, "?")}))
    assert story.observation("EVAL010").state is CLEAN
    story = left(tell, Evaluation(None, answers={"b": Answer(None, "?")}))
    assert story.observation("EVAL010").state is UNSEEN


@pytest.mark.parametrize("code", ["EVAL009", "EVAL010"])
def test_tasks_without_files_have_nothing_to_say(tell: Any, code: str) -> None:
    assert left(tell, None).observation(code).state is UNSEEN
    assert left(tell, Evaluation(None)).observation(code).state is UNSEEN


def test_a_run_that_died_is_not_blamed_for_what_it_did_not_write(tell: Any) -> None:
    story = left(tell, Evaluation(None, unread={"table.csv": "The run left no table.csv."}))
    story.ending = Ending.CRASHED
    assert story.observation("EVAL009").state is UNSEEN


MISSING = Evaluation(ArtifactProblem.MISSING, "The run left no model.pt in $OUTPUT_DIR.")


def test_weights_under_another_name_are_told_with_the_line_that_saved_them(tell: Any) -> None:
    story = tell.Story()
    story.evaluation = MISSING
    story.save(0, "model.pth")
    (hit,) = story.observation("EVAL012").hits
    assert [p.line for p in hit.where] == [40]
    assert "under another name" in hit.message
    story.ending = Ending.CRASHED
    assert story.observation("EVAL012").state is UNSEEN


def test_a_test_that_no_rank_passes_is_why_nothing_was_saved(tell: Any) -> None:
    story = tell.Story()
    story.evaluation = MISSING
    story.text = "import os\nimport torch\nif os.environ['RANK'] == 0:\n    torch.save(state, 'model.pt')\n"
    (hit,) = story.observation("EVAL012").hits
    assert [p.line for p in hit.where] == [3]
    assert "int(" in hit.hint


KEPT = """import os
import torch

EPOCHS = 4


def save(net):
    torch.save(net.module.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))


def main(net):
    best = 0.0
    for epoch in range(EPOCHS):
        accuracy = train(net)
        {before}
        if rank == 0 and {test}:
            save(net)


main(net)
"""


@pytest.mark.parametrize(
    ("before", "test", "line", "said", "advice"),
    [
        ("best = max(accuracy, best)", "accuracy > best", 16, "no value is better than itself",
         "move `best = max(accuracy, best)` from `train.py:15` below the `if` at `train.py:16`"),
        ("if accuracy > best: best = accuracy", "accuracy > best", 16, "no value is better than itself", "move"),
        ("best = min(accuracy, best)", "best > accuracy", 16, "no value is better than itself", "move"),
        ("if epoch == 0: best = accuracy", "accuracy > best", 16, "which was never so in this run", "Let every run"),
        ("pass", "epoch == EPOCHS", 16, "`epoch` goes from 0 to 3", "Write `epoch == EPOCHS - 1` for"),
        ("pass", "(epoch + 1) % 10 == 0", 16, "`epoch` goes from 0 to 3",
         "write `((epoch + 1) % 10 == 0 or epoch == EPOCHS - 1)` for"),
        ("pass", "(epoch + 1) % 2 == 0", 16, "which was never so in this run", "Let every run save"),
        ("pass", "accuracy > 0.99", 16, "which was never so in this run", "Let every run save"),
        ("continue", "True", 16, "asks for `True`", ""),
    ],
)  # fmt: skip
def test_a_save_that_no_epoch_came_to_is_not_advised_once_more(
    tell: Any, before: str, test: str, line: int, said: str, advice: str
) -> None:
    story = tell.Story()
    story.evaluation = MISSING
    story.text = KEPT.format(before=before, test=test)
    (hit,) = story.observation("EVAL012").hits
    assert (hit.where[0].line, said in hit.message, advice in hit.hint) == (line, True, True), hit
    assert "torch.save(" not in hit.hint


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("            save(net)", "            pass", "nothing calls `save`"),
        ("if rank == 0 and True", "if rank == 0", "and no rank came to it"),
        ("    torch.save(", "    try: torch.save(net, 'x')\n    except OSError: pass\n    torch.save(", ""),
    ],
)
def test_a_save_that_nothing_leads_to(tell: Any, old: str, new: str, said: str) -> None:
    story = tell.Story()
    story.evaluation = MISSING
    story.text = KEPT.format(before="pass", test="True").replace(old, new)
    (hit,) = story.observation("EVAL012").hits
    assert said in hit.message
    assert ("torch.save(" in hit.hint) is (not said)


def test_weights_of_another_kind_are_told_where_they_were_written(tell: Any) -> None:
    story = tell.Story()
    story.evaluation = Evaluation(ArtifactProblem.REFUSED, "model.pt holds a list.", "model.pt")
    story.save(0, "model.pt")
    (hit,) = story.observation("EVAL012").hits
    assert (hit.message, [p.line for p in hit.where]) == ("model.pt holds a list.", [40])


def test_scored_weights_verify(tell: Any) -> None:
    story = tell.Story()
    assert story.observation("EVAL012").state is UNSEEN
    story.evaluation = Evaluation(None, artifact="model.pt", hidden={"accuracy": 0.4})
    assert story.observation("EVAL012").state is CLEAN


def test_too_little_training_is_told_with_its_epochs_and_rate(tell: Any) -> None:
    story = tell.Story()
    story.text = (
        "import torch\nEPOCHS = 2\noptimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
        "for epoch in range(EPOCHS):\n    for x, y in loader:\n"
        "        model(x).sum().backward()\n        optimizer.step()\n"
    )
    story.epoch({0: range(16), 1: range(16, 32)})
    reported = ReportedMetrics(({"val_accuracy": 0.2}, {"val_accuracy": 0.4}))
    story.evaluation = Evaluation(None, hidden={"accuracy": 0.4}, reported=reported)
    assert story.observation("EVAL013").state is UNSEEN
    story.levels = {"accuracy": 0.3}
    assert story.observation("EVAL013").state is CLEAN
    story.levels = {"accuracy": 0.9}
    (hit,) = story.observation("EVAL013").hits
    assert "still getting better when it ended (0.200, then 0.400)" in hit.message
    assert [p.line for p in hit.where] == [2, 3]


LEFT_EARLY = """EPOCHS = 30
for epoch in range(EPOCHS):
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
    if patience_is_over():
        break
"""


def test_epochs_that_were_left_out_are_the_first_to_look_at(tell: Any) -> None:
    story = tell.Story()
    story.text = LEFT_EARLY
    for _ in range(2):
        story.epoch({0: range(16), 1: range(16, 32)})
    story.evaluation = Evaluation(None, hidden={"accuracy": 0.4})
    story.levels = {"accuracy": 0.9}
    (hit,) = story.observation("EVAL013").hits
    assert "2 epochs of 30" in hit.message
    assert "`train.py:7`" in hit.hint
    assert "more epochs" not in hit.hint
    assert "Nothing else" not in hit.message


REPLACED = """model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(8):
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
for size in (2, 4):
    {name} = build()
    optimizer = torch.optim.SGD({name}.parameters(), lr=0.1)
    {between}
torch.save(model.state_dict(), "model.pt")
"""


@pytest.mark.parametrize(
    ("name", "between", "steps", "told"),
    [
        ("model", "train_step(model)", 1, True),
        ("model", "model.load_state_dict(best)", 1, False),
        ("other", "train_step(other)", 1, False),
        ("model", "train_all(model)", 16, False),
    ],
)
def test_a_save_of_another_network_than_the_trained_one(
    tell: Any, name: str, between: str, steps: int, told: bool
) -> None:
    story = missing_its_target(tell, "import torch\n" + REPLACED.format(name=name, between=between))
    own = story.ranks[0].fields["steps"]
    story.ranks[0].fields["steps"] = own + [
        replace(own[-1], n=len(own) + i, optimizer=1) for i in range(steps)
    ]
    if steps > 1:
        story.ranks[0].fields["steps"] = own[:1] + story.ranks[0].fields["steps"][len(own) :]
    (hit,) = story.observation("EVAL013").hits
    assert ("What was saved is not what was trained" in hit.message) is told
    assert not told or [p.line for p in hit.where] == [9, 12, 4]


COPIED = """import copy
import torch
model = torch.nn.Linear(2, 2)
start = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(8):
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
torch.save(start.state_dict(), "model.pt")
"""


@pytest.mark.parametrize("live", [False, True])
def test_a_copy_from_before_the_training_that_is_saved(tell: Any, live: bool) -> None:
    """Unless the run has shown that the file holds the trained network."""
    story = missing_its_target(tell, COPIED)
    story.save(0, "model.pt", line=10)
    saves = story.ranks[0].fields["saves"]
    saves[:] = [replace(save, live=live) for save in saves]
    story.evaluation = replace(story.evaluation, artifact="model.pt", sums=(1.0, 2.0, 3.0))
    (hit,) = story.observation("EVAL013").hits
    assert ("copies the weights before they are trained" in hit.message) is not live
    assert live or [p.line for p in hit.where] == [4, 10]
    reported = ReportedMetrics(({"val_accuracy": 0.8}, {"val_accuracy": 0.9}))
    story.evaluation = replace(story.evaluation, validation={"accuracy": 0.1}, reported=reported)
    (hit,) = story.observation("EVAL007").hits
    assert ("copies the weights before they are trained" in hit.message) is not live
    assert live or hit.hint.startswith("Save what was trained")


STRIDED = """import torch
from torch.utils.data import Dataset

class Windows(Dataset):
    def __init__(self, path, rank, world_size):
        text = open(path).read()
        {cut}

    def __getitem__(self, index):
        first = index * 64
        return self.numbers[first : first + 64]

data = Windows("train.txt", dist.get_rank(), dist.get_world_size())
for x in data:
    model(x).sum().backward()
"""


def missing_its_target(tell: Any, text: str) -> Any:
    story = tell.Story()
    story.text = text
    for _ in range(2):
        story.epoch({0: range(16), 1: range(16, 32)})
    story.evaluation = Evaluation(None, hidden={"accuracy": 0.4})
    story.levels = {"accuracy": 0.9}
    return story


def test_a_text_of_which_each_rank_takes_every_second_sign(tell: Any) -> None:
    story = missing_its_target(
        tell, STRIDED.format(cut="self.numbers = torch.tensor([ord(c) for c in text[rank::world_size]])")
    )
    (hit,) = story.observation("EVAL013").hits
    assert "`train.py:7` takes every n-th sign of the text" in hit.message
    assert hit.hint.startswith("Leave `text` whole")
    assert hit.where[0].line == 7


@pytest.mark.parametrize(
    "cut",
    [
        "self.numbers = torch.tensor([ord(c) for c in text])",
        "self.numbers = torch.tensor([ord(c) for c in text]).unfold(0, 64, 64)[rank::world_size]",
        "self.numbers = text.splitlines()[rank::world_size]",
    ],
)
def test_windows_and_lines_may_be_dealt_out_in_strides(tell: Any, cut: str) -> None:
    (hit,) = missing_its_target(tell, STRIDED.format(cut=cut)).observation("EVAL013").hits
    assert "every n-th sign" not in hit.message
    assert "10 epochs instead of 2" in hit.hint


def test_a_group_in_which_nobody_talks(tell: Any) -> None:
    story = tell.Story()
    story.group()
    for rank in (0, 1):
        story.collective(rank, "barrier", 9)
    look = story.observation("DIST012")
    assert look.state is FLAGGED
    assert [p.line for p in look.hits[0].where] == [5]
    story.ending = Ending.CRASHED
    assert story.observation("DIST012").state is UNSEEN


def test_one_collective_or_a_wrapper_is_talk_enough(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.collective(0, "all_reduce", 9)
    assert story.observation("DIST012").state is CLEAN
    story = tell.Story()
    story.group()
    story.wrap()
    assert story.observation("DIST012").state is CLEAN
    assert tell.Story().observation("DIST012").state is UNSEEN
    assert tell.Story(1).observation("DIST012").state is UNSEEN


def test_a_rank_that_never_computes_a_gradient_brings_no_share(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.collective(0, "all_reduce", 9)
    for r in story.ranks:
        r.event("end", backwards=1 - r.rank, derivatives=0)
    look = story.observation("DIST012")
    assert look.state is FLAGGED
    assert look.hits[0].ranks == (1,)
    assert "Rank 0 did all of the work" in look.hits[0].message
    # Gradients can be asked for one by one, and written down by hand on all ranks.
    for passes in ((1, 0), (0, 1)), ((0, 0), (0, 0)):
        story = tell.Story()
        story.group()
        story.collective(0, "all_reduce", 9)
        for r, (backwards, derivatives) in zip(story.ranks, passes, strict=True):
            r.event("end", backwards=backwards, derivatives=derivatives)
        assert story.observation("DIST012").state is CLEAN


@pytest.mark.parametrize(("bytes_there", "state"), [(0, FLAGGED), (1 << 20, CLEAN)])
def test_a_gpu_that_holds_nothing_at_any_step(tell: Any, bytes_there: int, state: State) -> None:
    story = tell.Story(1)
    story.profile = "gpu"
    story.epoch({0: range(16)})
    steps = story.ranks[0].fields["steps"]
    story.ranks[0].fields["steps"] = [replace(step, device_bytes=bytes_there) for step in steps]
    assert story.observation("DEV006").state is state
    # Without one, the text alone speaks, and an empty one leaves nothing behind.
    story.profile = "cpu"
    assert story.observation("DEV006").state is CLEAN


SAVES = """import os
import torch
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, net):
        self.model = DistributedDataParallel(net)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def save(self, folder):
        {}
"""


@pytest.mark.parametrize(
    ("save", "written"),
    [
        ('torch.save(self.optimizer.state_dict(), folder + "/model.pt")', "self.model.module.state_dict()"),
        (
            'torch.save({"net": self.model.module.state_dict(), "epoch": 1}, "model.pt")',
            "self.model.module.state_dict()",
        ),
        ('torch.save(self.model, os.path.join(folder, "model.pt"))', "self.model.module.state_dict()"),
    ],
)
def test_who_saved_something_else_is_told_what_to_save_in_the_own_names(
    tell: Any, save: str, written: str
) -> None:
    story = tell.Story()
    story.text = SAVES.format(save)
    story.evaluation = Evaluation(ArtifactProblem.REFUSED, "model.pt holds a list.", "model.pt")
    story.save(0, "model.pt", line=12)
    (hit,) = story.observation("EVAL012").hits
    assert f"At `train.py:12` write `{written}` instead of" in hit.hint
    assert hit.fix is not None


def test_another_name_of_the_file_is_written_as_it_is_asked_for(tell: Any) -> None:
    story = tell.Story()
    story.text = SAVES.format('torch.save(self.model.module.state_dict(), os.path.join(folder, "net.pth"))')
    story.evaluation = MISSING
    story.save(0, "net.pth", line=12)
    (hit,) = story.observation("EVAL012").hits
    assert 'write `"model.pt"` instead of `"net.pth"`' in hit.hint
    assert hit.fix is not None


RENAMED = """import torch
from torch.nn.parallel import DistributedDataParallel

unwrapped = lambda m: m.module if isinstance(m, DistributedDataParallel) else m
model = DistributedDataParallel(net)
state = {}.state_dict()
renamed = {{}}
for k, v in state.items():
    renamed[{}] = v.cpu()
torch.save({}, "model.pt")
"""
MISMATCH = Evaluation(ArtifactProblem.MISMATCH, "model.pt does not fit the task's network.", "model.pt")


@pytest.mark.parametrize(
    ("of", "key", "saved", "line"),
    [
        ("model.module", "k[len('module.'):]", "renamed", 9),
        ("model.module", "k.lstrip('module.')", "renamed", 9),
        ("model", "k.lstrip('module.')", "renamed", 9),
        ("model.module", "k", "{k[7:]: v for k, v in state.items()}", 10),
        ("model.module", "k", "{'net.' + k: v for k, v in state.items()}", 10),
        ("unwrapped(model)", "k[7:]", "renamed", 9),
        ("model", "k[7:]", "renamed", None),
        ("model.module", "k.removeprefix('module.')", "renamed", None),
        ("model.module", "k", "renamed", None),
    ],
)
def test_weights_whose_names_were_changed(tell: Any, of: str, key: str, saved: str, line: int | None) -> None:
    story = tell.Story()
    story.text = RENAMED.format(of, key, saved)
    story.evaluation = MISMATCH
    story.save(0, "model.pt", line=10)
    (hit,) = story.observation("EVAL012").hits
    assert hit.where[0].line == (line or 10)
    assert (hit.fix is not None) is (line is not None)
    assert ("write `k" in hit.hint) is (line is not None)
