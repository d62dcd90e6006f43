"""EVAL010 over numbers that are a known multiple of the right ones: which line is named, and what is advised."""

from __future__ import annotations

from typing import Any

import pytest

from grader.model.evaluation import Answer, Evaluation


def wrong_number(tell: Any, text: str, said: str) -> tuple[str, str]:
    """The line that is named first for what the scorer says, and the advice."""
    story = tell.Story(1)
    story.write(0, "table.csv")
    story.evaluation = Evaluation(None, answers={"a": Answer(0.5, said, "table.csv")})
    story.text = text + "\n" * 44
    (hit,) = story.observation("EVAL010").hits
    return story.text.splitlines()[hit.where[0].line - 1].strip(), hit.hint


LONG = "The table adds up to 1018.62 s in a run of 4.82 s."
DOUBLE = "The table adds up to 9.20 s in a run of 4.82 s."
SHORT = "By the table a step of batch size 2 took 4e-06 s; by the clock beside the script it took 0.004 s."
TIMED = "import time\nbegin = time.perf_counter()\ntrain()\n"
ZERO = "At world size 1 the gradient is off by 1.0e+00 of its largest element: all its numbers are 0."
TORN = "It is the mean over the inputs of samples 4 to 5 beside the targets of samples 0 to 1."
RUNNING = (
    "The weights are off by 1: each chunk is a running mean, in which the rank that came last weighs 1/2."
)
HALF = "The table says 42. With gradients half as large the scorer's take 42, too."
TWICE = "The table says 11. With gradients 2 times as large the scorer's take 11, too."
BEGUN = "Batch size 8 begins at a loss of 1.08, where batch size 1 ended; at w = b = 0 it is 38.89."
WHOLE = (
    "`speedup` is 0.7; by runs.csv 1.8: 9.9 s / 13.5 s of whole runs, which have different numbers of epochs."
)
TURNED = "`speedup` is 0.6; by runs.csv it is 1.7: it is the other way round, several ranks' seconds by those of one."
ROUNDED = "Off. Gradients went from rank to rank with 2 bytes for each number, where they have 8."
FEW = "By the table a step of batch size 2 took 0.0002 s; by the clock beside the script it took 0.003 s."
FALLEN = (
    "Row 4 of runs.csv is this run, and it tells a learning rate of 1e-05; the highest that was seen is 0.1."
)
SLOW = "Row 4 of runs.csv is this run, and it tells of 90 s; from start to end the run took 14.0 s."
CLOCK = "import time\nfor n, b in enumerate(loader):\n    {0}start = time.perf_counter()\n    step(b)\n"
WARM = (
    "import time\nimages = 0\nfor n, b in enumerate(loader):\n    if n == 5:\n        {}\n    step(b)\n"
    "    images += len(b)\nseconds = time.perf_counter() - begin\n"
)
STOP = "seconds = time.perf_counter() - start\n"
TABLE = 'import csv\nf = csv.writer(file)\nf.writerow(["batch_size", "learning_rate", "seconds"])\n'
MADE = "import torch\noptimizer = torch.optim.SGD(net.parameters(), lr=LR)\n"
ROUNDS = (
    "import torch\nfor k in (1, 2):\n    net(x).sum().backward()\n    for n, p in net.named_parameters():\n"
)
SHARE = "import torch\nloss = F.mse_loss(net(a), b)\nloss.backward()\n"
LAP = "for i in range(n - 1):\n    dist.recv(incoming, left)\n    "
DESCENT = (
    "import torch\nfor i in batches:\n    off = w * x[i] + b - y[i]\n    by_w = {}\n    w -= rate * by_w\n"
)
TRAIN = (
    "import torch\n\nclass Line:\n    def __init__(self):\n        self.w = torch.zeros((), requires_grad=True)\n\n"
    "    def fit(self, size):\n        for epoch in range(9):\n            loss = (self.w * x - y).square().mean()\n"
    "            loss.backward()\n            self.w.data -= 0.1 * self.w.grad\n            self.w.grad = None\n\n"
)
BY_NAME = (
    "import torch\nw = torch.zeros((), requires_grad=True)\nfor size in (1, 8):\n    for epoch in range(3):\n"
    "        (w * x - y).square().mean().backward()\n        w.data -= w.grad\n"
)


@pytest.mark.parametrize(
    ("text", "said", "line", "advice"),
    [
        ("import time\ndef now():\n    return time.perf_counter() * 1000\nbegin = now()\nseconds = now() - begin\n",
         LONG, "return time.perf_counter() * 1000", "Write `time.perf_counter()` for `time.perf_counter() * 1000`"),
        (f"{TIMED}seconds = 1e3 * (time.perf_counter() - begin)\n", LONG,
         "seconds = 1e3 * (time.perf_counter() - begin)", "Write `time.perf_counter() - begin` for"),
        ("import time\nbegin = time.perf_counter_ns()\ntrain()\nseconds = time.perf_counter_ns() - begin\n", LONG,
         "begin = time.perf_counter_ns()", "divide by 1e9"),
        ("seconds = start.elapsed_time(end)\n", LONG, "seconds = start.elapsed_time(end)", "divide by 1000"),
        (f"{TIMED}print(f'{{(time.perf_counter() - begin) * 1000}} ms')\n", LONG, "", "look for milliseconds"),
        (f"{TIMED}seconds = (time.perf_counter() - begin) / 1000\n", SHORT,
         "seconds = (time.perf_counter() - begin) / 1000", "Write `time.perf_counter() - begin`"),
        ("import time\nbegin = time.process_time()\n", DOUBLE, "begin = time.process_time()",
         "what all threads computed"),
        (TIMED, DOUBLE, "", "take `begin = time.perf_counter()` anew for each row"),
        (CLOCK.format("if n >= 5: ") + STOP, FEW, "if n >= 5: start = time.perf_counter()",
         "Write `n == 5` for `n >= 5`"),
        (CLOCK.format("if n > K: ") + STOP, FEW, "if n > K: start = time.perf_counter()", "Write `n == K + 1` for"),
        (CLOCK.format("") + STOP, FEW, "start = time.perf_counter()", "in front of the loop at `train.py:2`"),
        (CLOCK.format("if n == 5: ") + STOP, FEW, "", ""),
        (f"{CLOCK.format('')}for b in loader:\n    step(b)\n{STOP}", FEW, "", ""),
        (f"{TABLE}begin = now()\nrows = [[size, rate, now() - begin]]\nf.writerow([size, rate, now() - begin])\n",
         SLOW, "f.writerow([size, rate, now() - begin])", ""),
        (f"{MADE}{TABLE}rate = optimizer.param_groups[0]['lr']\nf.writerow([size, rate, s])\n", FALLEN,
         "rate = optimizer.param_groups[0]['lr']", "Write its peak, `LR` of `train.py:2`"),
        (f"{TABLE}rate = schedule.get_last_lr()[0]\nf.writerow([size, rate, s])\n", FALLEN,
         "rate = schedule.get_last_lr()[0]", "Write the highest learning rate that the optimizer had"),
        (f"{TABLE}rate = 1e-5\nf.writerow([size, rate, s])\n", FALLEN, "rate = 1e-5", "of a schedule its peak"),
        (f"{ROUNDS}        kept[n] = p.grad\n    net.zero_grad(set_to_none=False)\n", ZERO, "kept[n] = p.grad",
         "Keep a copy, `p.grad.clone()`"),
        (f"{ROUNDS}        kept.append(p.grad.detach())\n        p.grad.zero_()\n", ZERO,
         "kept.append(p.grad.detach())", "`p.grad.detach().clone()`"),
        (f"{ROUNDS}        kept[n] = p.grad.clone()\n        p.grad.zero_()\n", ZERO, "", "cleared next"),
        (f"{ROUNDS}        p.grad *= m // total\n", ZERO, "p.grad *= m // total",
         "Write `(m / total)` for `m // total`"),
        (f"a = x[first : first + m]\nb = y[:m]\n{SHARE}", TORN, "b = y[:m]", "Write `y[first:first + m]` for `y[:m]`"),
        (f"a, b = x[first:last], y[first:last]\n{SHARE}", TORN, "", "by the same numbers"),
        (f"{LAP}chunk = (chunk + incoming) / 2\n", RUNNING, "chunk = (chunk + incoming) / 2",
         "Write `chunk + incoming` for `(chunk + incoming) / 2`. Only add in each round"),
        (f"{LAP}chunk += incoming\n    chunk /= 2\n", RUNNING, "chunk /= 2", "Leave out `chunk /= 2`"),
        (f"{LAP}chunk += incoming\nchunk /= 4\n", RUNNING, "", "divide once"),
        (DESCENT.format("(off * x[i]).mean()"), HALF, "by_w = (off * x[i]).mean()",
         "Write `2 * ((off * x[i]).mean())`"),
        (DESCENT.format("(off * x[i]).sum() / len(i)"), HALF, "by_w = (off * x[i]).sum() / len(i)", "Write `2 * ("),
        (DESCENT.format("2 * (off * x[i]).mean()"), HALF, "", "2 times the mean"),
        ("loss = ((w * x - y) ** 2).mean() / 2\nloss.backward()\n", HALF, "loss = ((w * x - y) ** 2).mean() / 2",
         "Leave out the half"),
        ("loss = 2 * ((w * x - y) ** 2).mean()\nloss.backward()\n", TWICE, "loss = 2 * ((w * x - y) ** 2).mean()",
         "Leave out the factor 2"),
        (f"{TRAIN}line = Line()\nfor size in (1, 8):\n    line.fit(size)\n", BEGUN, "line = Line()",
         "Move `line = Line()` into the loop `for size in (1, 8):`"),
        (f"{TRAIN}for size in (1, 8):\n    line = Line()\n    line.fit(size)\n", BEGUN, "",
         "Set the parameters to their"),
        (BY_NAME, BEGUN,
         "w = torch.zeros((), requires_grad=True)", "Move `w = torch.zeros((), requires_grad=True)` into the loop"),
        (f"{WARM.format('begin = time.perf_counter()')}", FEW, "images += len(b)",
         "Write `images = 0` beside `begin = time.perf_counter()` at `train.py:5`"),
        (f"{WARM.format('begin, images = time.perf_counter(), 0')}", FEW, "", "warm up"),
        ("speedup = together / alone\n", TURNED, "speedup = together / alone", "Write `alone / together` for"),
        ("import torch\nsent = dist.isend(chunk.to(torch.bfloat16), 1)\n", ROUNDED,
         "sent = dist.isend(chunk.to(torch.bfloat16), 1)", "Write `chunk` for `chunk.to(torch.bfloat16)`"),
        ("import torch\nWIRE = torch.float16\ncame = torch.empty(9, dtype=WIRE)\n", ROUNDED,
         "came = torch.empty(9, dtype=WIRE)", "Send the numbers in the type"),
        ("import torch\ncame = torch.empty(9, dtype=torch.float64)\n", ROUNDED, "", "Send the numbers in the type"),
        ("alone = min(r[4] for r in runs if r[0] == 1)\nspeedup = alone / runs[-1][4]\n", WHOLE,
         "alone = min(r[4] for r in runs if r[0] == 1)", "Divide each run's seconds by its epochs"),
    ],
)  # fmt: skip
def test_a_multiple_of_the_right_number_is_shown_where_it_comes_about(
    tell: Any, text: str, said: str, line: str, advice: str
) -> None:
    named, hint = wrong_number(tell, text, said)
    assert (named, advice in hint) == (line, True), hint
