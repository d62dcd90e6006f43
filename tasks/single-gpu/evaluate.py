"""What `single-gpu` is held against: the network, its accuracy, and the memory that training it takes.

Runs only in the scorer. Bytes are computed from the network itself; activations are counted as the tensors that
autograd keeps for the backward pass.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from grader.evaluate.classifier import accuracy_and_loss

BATCH_SIZES = (2, 4, 64)
_FLOAT_BYTES = 4
_COUNTED_DIFFERENTLY = (0.6, 2.2)
"""Outputs of all layers are 1.7 times the tensors that are kept; with the inputs left out, it is less."""

_TOO_QUICK, _TOO_SLOW = 3, 10
"""How far a told step may lie from those of the probe's clock: they were other steps of the same size, some of them the
first, and a GPU may still be at work when the clock of one is read."""

Answer = tuple[float | None, str, str]


def build_model() -> nn.Module:
    """The skeleton's network with fresh weights, on the CPU: 20,490 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )


def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and mean loss over uint8 images (N, 28, 28) with int64 labels (N,), each scored once."""
    return accuracy_and_loss(model, images.unsqueeze(1).float() / 255, labels)


def _kept_bytes(batch_size: int) -> int:
    """Bytes that autograd keeps for the backward pass of one batch, the weights not counted."""
    model = build_model()
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        # Held until the bytes are counted: memory that is given back is handed out again under the same address.
        loss = F.cross_entropy(model(torch.zeros(batch_size, 1, 28, 28)), torch.zeros(batch_size, dtype=torch.long))
    total = sum(kept.values())
    del loss
    return total


def examine(left: dict[str, Any], run: dict[str, float]) -> dict[str, Answer]:
    """Answer `throughput` from its table, and `states`, `activations` and `allocator` from the account of memory."""
    answers: dict[str, Answer] = {}
    if "throughput.csv" in left:
        answers["throughput"] = _throughput({r["batch_size"]: r for r in left["throughput.csv"]}, run)
    if "memory.csv" in left:
        rows = {r["batch_size"]: r for r in left["memory.csv"]}
        missing = [size for size in BATCH_SIZES if size not in rows]
        if missing:
            none = (0.0, f"memory.csv has no row for batch size {missing[0]}.", "memory.csv")
            return answers | {"states": none, "activations": none, "allocator": none}
        answers["states"] = _states(rows)
        answers["activations"] = _activations(rows)
        answers["allocator"] = _allocator(rows, run)
    return answers


def _throughput(rows: dict[int, dict[str, Any]], run: dict[str, float]) -> Answer:
    file = "throughput.csv"
    missing = [size for size in BATCH_SIZES if size not in rows]
    if missing:
        return (1 - len(missing) / 3, f"throughput.csv has no row for batch size {missing[0]}.", file)
    for size in BATCH_SIZES:
        row = rows[size]
        if not row["seconds"] > 0 or row["images"] < 2 * size:
            said = f"Batch size {size} was timed over {row['images']} images and {row['seconds']:.3g} s"
            return (0.0, f"{said}, which is too little to be a measurement.", file)
        rate = row["images"] / row["seconds"]
        if abs(row["images_per_s"] - rate) > 0.02 * rate:
            said = f"Batch size {size} says {row['images_per_s']:,.0f} images/s"
            return (0.0, f"{said}; {row['images']:,} images in {row['seconds']:.3f} s are {rate:,.0f}.", file)
    images, seconds = (sum(rows[size][key] for size in BATCH_SIZES) for key in ("images", "seconds"))
    if seconds > run["wall_s"] + 1:
        return (0.0, f"The table adds up to {seconds:.2f} s in a run of {run['wall_s']:.2f} s.", file)
    if run["samples"] and images > run["samples"] * 1.02:
        said = f"The table counts {images:,} images; in its training steps the run used {run['samples']:,.0f}."
        return (0.0, said, file)
    if not run["samples"]:
        return (None, "No training steps were seen that the table could be held against.", file)
    for size in BATCH_SIZES:
        if contradicted := _contradicted(size, rows[size], run):
            return (0.0, contradicted, file)
    small, large = (rows[size]["images_per_s"] for size in (2, 64))
    if large <= small:
        said = f"By the table a batch of 64 trains {large:,.0f} images/s and a batch of 2 {small:,.0f}"
        return (0.0, f"{said}: on no device we know is that so. Time whole steps, after a few to warm up.", file)
    said = f"Batch sizes 2, 4 and 64 train {small:,.0f}, {rows[4]['images_per_s']:,.0f} and {large:,.0f} images/s"
    return (1.0, f"{said}.", file)


def _contradicted(size: int, row: dict[str, Any], run: dict[str, float]) -> str:
    """What a row says that the run's own steps of that batch size deny, as a sentence; "" where they bear it out."""
    num_steps = run.get(f"steps_of_{size}", 0.0)
    if row["images"] > num_steps * size * 1.02:
        made = f"{num_steps:,.0f} steps of that size" if num_steps else "no step of that size"
        return f"Batch size {size} was timed over {row['images']:,} images by the table; the run made {made}."
    told, seen, quick = row["seconds"] * size / row["images"], run[f"step_s_of_{size}"], run[f"quick_step_s_of_{size}"]
    if quick / _TOO_QUICK <= told <= seen * _TOO_SLOW:
        return ""
    by_clock = f"by the clock beside the script it took {seen if told > seen else quick:.2g} s"
    return f"By the table a step of batch size {size} took {told:.2g} s; {by_clock}."


def _states(rows: dict[int, dict[str, Any]]) -> Answer:
    weights = sum(p.numel() for p in build_model().parameters()) * _FLOAT_BYTES
    # Adam holds two averages for each value, and a counter of steps for each tensor.
    wanted = {"weights": weights, "gradients": weights, "optimizer": 2 * weights}
    wrong = []
    for name, want in wanted.items():
        got = next((rows[size][name] for size in BATCH_SIZES if abs(rows[size][name] - want) > 0.01 * want), None)
        if got is not None:
            times = {"weights": "4 bytes for each parameter", "gradients": "as many as the weights"}
            why = times.get(name, "Adam keeps two more values for each parameter")
            wrong.append(f"memory.csv has {got:,} bytes of {name}; the network implies {want:,}: {why}.")
    right = f"{weights:,} bytes of weights, as many of gradients and twice as many of Adam's state"
    return (1 - len(wrong) / 3, wrong[0] if wrong else f"{right}, as the network implies.", "memory.csv")


def _activations(rows: dict[int, dict[str, Any]]) -> Answer:
    low, high = _COUNTED_DIFFERENTLY
    first, *others = (rows[size]["activations"] / size for size in BATCH_SIZES)
    times = [other / first if first > 0 else 0.0 for other in others]
    if all(abs(t - n) < 0.05 for n, t in enumerate(times, start=2)):
        told = (
            f"At batch size {BATCH_SIZES[-1]} memory.csv has {rows[BATCH_SIZES[-1]]['activations']:,} bytes"
        )
        said = f"{told} of activations: for each image that is 3 times as much as at 2, and batch size 4 has twice as"
        return (
            0.0,
            f"{said} much. Every layer is counted once more in each batch size that follows.",
            "memory.csv",
        )
    for size in BATCH_SIZES:
        want, got = _kept_bytes(size), rows[size]["activations"]
        if not low * want <= got <= high * want:
            said = f"At batch size {size} memory.csv has {got:,} bytes of activations"
            return (0.0, f"{said}; autograd keeps about {want:,} for the backward pass.", "memory.csv")
    growth = rows[64]["activations"] / rows[2]["activations"]
    if not 25 < growth < 40:
        said = f"From batch size 2 to 64 the activations grow by a factor of {growth:.1f}"
        return (0.5, f"{said}; they are proportional to the batch.", "memory.csv")
    return (1.0, f"Activations grow with the batch, to {rows[64]['activations']:,} bytes at 64 images.", "memory.csv")


def _allocator(rows: dict[int, dict[str, Any]], run: dict[str, float]) -> Answer:
    seen, row = run["device_bytes"], rows[64]
    if not seen:
        return (None, "There is no GPU here, so there is no allocator to ask.", "memory.csv")
    states = row["weights"] + row["gradients"] + row["optimizer"]
    if not states or row["peak"] < states:
        said = f"A peak of {row['peak']:,} bytes is less than weights, gradients and state together, {states:,}"
        return (0.0, f"{said}.", "memory.csv")
    if row["peak"] > seen * 1.01:
        said = f"memory.csv has a peak of {row['peak']:,} bytes; the allocator never handed out more than {seen:,.0f}"
        return (0.0, f"{said}.", "memory.csv")
    return (1.0, f"The allocator's peak at batch size 64 is {row['peak']:,} bytes.", "memory.csv")
