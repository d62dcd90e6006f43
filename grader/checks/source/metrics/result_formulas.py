"""What is right of a result that a task's scorer found to be wrong, where the text does not show what made it so.

By the words of the scorer's sentence. Nothing here reads a script: what is said holds for all of them. A sentence that
nobody knows, of a course's own task, gets the way to look for the first number that is wrong.
"""

from __future__ import annotations

_LAPS = (
    "Cut the gradient into `world_size` chunks and go around twice, in `world_size - 1` rounds of one chunk each: "
    "first each rank adds its own part to the chunk that comes and hands it on, then the finished chunks travel on."
)
_LOSS = (
    "Compute it after the last update, over all points, with the w and b that are told: neither the mean of the "
    "batches' losses nor the loss of one batch is that."
)
_STEPS = (
    "Each update takes the gradient of its own batch alone, `2 * ((w * x + b - y) * x).mean()` for w and "
    "`2 * (w * x + b - y).mean()` for b, times the learning rate of the row, away from w and b."
)
_TIMED = (
    "Of each batch size make some steps to warm up; then read the clock, make the steps that count, and read it again: "
    "images and seconds are those of the same steps, and `images_per_s` is the one divided by the other."
)
_ACTIVATIONS = (
    "Add up the bytes of what a forward pass of one whole batch leaves for the backward pass, as "
    "`torch.autograd.graph.saved_tensors_hooks` shows it, without the weights."
)
_PEAK = (
    "Call `torch.cuda.reset_peak_memory_stats()`, make a whole step of that batch size, and read "
    "`torch.cuda.max_memory_allocated()` then."
)
_RUNS = (
    "Start the script once for each row, on one machine, and write what that run told: its ranks, its batch on each "
    "rank, its seconds and the accuracy of what it saved."
)
_OWN = "Write it from `dist.get_world_size()`, the loader's own batch size and the epochs that were made."
_READ = "Let the script compute this from the rows of `runs.csv`; rows are counted from 1."
_ENDS = "End the training with the first epoch that changes the loss over all points by under 0.1 %."
_MOVES = (
    "Change w and b themselves in each update (in place, or by an optimizer that was given these very tensors), and "
    "read what is told from the same tensors after the last one."
)
_BACK = (
    "Write what the ranks' messages came to into each `parameter.grad` before the optimizer steps: what is made of the "
    "gradients by `torch.cat` is a copy of them."
)
_COMPARED = (
    "After the first `backward()` gather all ranks' gradients by `dist.all_gather`, only to look, and print where "
    "their mean differs from what the optimizer steps with: in all numbers, in one chunk, or on one rank."
)
_ON = "One round brings the part of one rank: in each of `world_size - 1` rounds hand on what came last, and add it."
_UNKNOWN = (
    "Work this out by hand for one case, and print what the script puts into it: the first number that is another one "
    "is where it goes wrong."
)

_FORMULAS: tuple[tuple[str, str], ...] = (
    (
        " points each and counts ",
        "Where an update is made, add the number of points in its batch to the samples.",
    ),
    ("is no number of whole epochs", "Count one update for each batch, where w and b are changed."),
    (
        "rows for the epochs 0 to",
        "Write the loss at w = b = 0 as epoch 0, and one row after each epoch's updates.",
    ),
    (
        "losses.csv begins at",
        f"Write the loss at w = b = 0 as epoch 0, and that of the row as the last one. {_LOSS}",
    ),
    ("reports a loss of", _LOSS),
    ("No row's loss is that of its w and b", _LOSS),
    ("no update came to", _MOVES),
    ("the line through these points", _STEPS),
    (" updates; the table says", f"Count one update for each batch, where w and b are changed. {_STEPS}"),
    ("own runs end at a loss of", f"{_STEPS} {_LOSS}"),
    (" stops at epoch ", _ENDS),
    (" goes on to epoch ", _ENDS),
    (
        "nobody divided it",
        "Divide by the number of ranks, once, when all parts are in and before the optimizer steps.",
    ),
    ("own gradient alone: nothing of the others", _BACK),
    (
        "divided once more by their number",
        "Divide by the number of ranks once: each part, or their sum, and not both.",
    ),
    ("added what the rank before it sent once", _ON),
    ("bytes in 4 steps", _LAPS),
    ("of the largest one;", _COMPARED),
    ("is too little to be a measurement", _TIMED),
    (" images/s", _TIMED),
    ("steps the run used", _TIMED),
    ("by the table; the run made", _TIMED),
    ("By the table a step of batch size", _TIMED),
    ("The table adds up to", _TIMED),
    ("bytes of activations", _ACTIVATIONS),
    ("the activations grow by", _ACTIVATIONS),
    ("A peak of", _PEAK),
    ("has a peak of", _PEAK),
    (
        "; the network implies",
        "Add up `t.numel() * t.element_size()` over these tensors, after the first step.",
    ),
    (
        "is this run:",
        _OWN,
    ),
    (" is this run, and it tells", _RUNS),
    ("of runs.csv", _RUNS),
    ("runs.csv has", _RUNS),
    ("by runs.csv it is", _READ),
    ("a speed-up needs a run on one rank", _RUNS),
    ("in float64.", "Save `model.state_dict()` of the network as the skeleton builds it, in float64."),
    (", not (", "Store each gradient in the shape of its parameter, as `parameter.grad` has it."),
    ("has no row", "Write one row for each of them, in one run."),
)
"""Words of the scorers' sentences, the more special ones first, and what is right."""


def formula(said: str) -> str:
    """What a result of that kind has to be; never empty."""
    return next((right for words, right in _FORMULAS if words in said), _UNKNOWN)
