"""All ranks draw the same random numbers for augmentation or noise.

## What it finds
One seed for all ranks, and random transforms, noise or masks that each rank draws for its own samples afterwards.

## Why it matters
Ranks see different samples, but the first image of each rank's batch is flipped and cropped alike, and gets the same
noise. The global batch is less varied than its size promises: k ranks bring the randomness of one.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, transforms

dist.init_process_group("gloo")
torch.manual_seed(42)
augment = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
train_set = datasets.CIFAR10("data", train=True, transform=augment)
model = DistributedDataParallel(build_model())
loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
for images, labels in loader:
    torch.nn.functional.cross_entropy(model(images), labels).backward()
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, transforms

dist.init_process_group("gloo")
torch.manual_seed(42 + dist.get_rank())  # DistributedDataParallel gives all ranks the weights of rank 0
augment = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
train_set = datasets.CIFAR10("data", train=True, transform=augment)
model = DistributedDataParallel(build_model())
loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
for images, labels in loader:
    torch.nn.functional.cross_entropy(model(images), labels).backward()
dist.destroy_process_group()
```

## How it is seen
In the run, by the state of the random generators at the first training steps: equal on all ranks, and drawn from
between the steps. In the source, by a seed without the rank in it, be it one that undoes an earlier seed with the
rank, and random transforms or noise in training. A seed that only makes the initial weights equal is none of this
rule's business.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import listed, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.data.dataset_inputs import parts_of
from grader.checks.source.data.seed_fixes import by_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.checks.source.values.random_generators import Seeding
from grader.checks.source.values.seeds import Seeded
from grader.model.finding import Location, Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import RankTrace

SEVERITY = Severity.HINT
NEEDS = Precondition.RANKS
EXPLAINED_BY = ("DATA001", "DATA003", "DATA007")

_TRANSFORMS = ("torchvision.transforms.", "albumentations.", "kornia.augmentation.", "torchaudio.transforms.")
_RANDOM = (
    "Random",
    "AutoAugment",
    "TrivialAugment",
    "AugMix",
    "ColorJitter",
    "ElasticTransform",
    "FrequencyMasking",
)
_SURE_NOISE = {
    "rand",
    "randn",
    "rand_like",
    "randn_like",
    "normal",
    "bernoulli",
    "uniform",
    "gauss",
    "random",
}
_IN_WORDS = {"torch": "torch's", "numpy": "numpy's", "python": "Python's", "cuda": "the device's"}
_BY_RANK = "Seed by rank: `torch.manual_seed(seed + dist.get_rank())`, before the loaders are built."
_STILL = "DDP still starts all ranks from rank 0's weights, and `DistributedSampler` has a seed of its own."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag one common seed where a training loop draws augmentation or noise."""
    training = script.training
    if not script.joins_group or training.framework or not training.trains:
        return
    seeding = Seeding(script)
    if seeding.kept_by_rank:
        return
    seeds = [c for c in seeding.alike if script.guards.on_every_rank(c) and script.guards.partial(c) is None]
    for draw in _draws(script) if seeds else ():
        family = _family(script, draw)
        if seeding.of(family) is not Seeded.ALIKE:
            continue
        seed = next((c for c in seeds if family in (script.names.qualified(c.func) or family)), seeds[0])
        yield Hit(
            message=f"{script.at(seed)} seeds all ranks alike, {script.quote(seed)}, and {script.at(draw)} draws "
            f"random numbers for training, {script.quote(draw)}. All ranks then draw the same ones: the "
            "augmentation of k ranks is as varied as that of one.",
            hint=_hint(script, seed),
            where=(script.location(draw), script.location(seed)),
        )
        return


def _hint(script: Script, seed: ast.Call | None) -> str:
    written = by_rank(script, seed) if seed is not None else ""
    told = f"Seed by rank at {script.at(seed)}: `{written}`." if seed is not None and written else _BY_RANK
    return f"{told} {_STILL}"


def _draws(script: Script) -> list[ast.Call]:
    """Random transforms of the training data, and noise drawn in the training loop."""
    found: set[ast.Call] = set()
    for loader in script.training.loaders():
        own = any(script.argument(loader, n) is not None for n in ("worker_init_fn", "generator"))
        dataset = script.argument(loader, "dataset")
        if not script.training.roles(loader).trains or own or dataset is None:
            continue
        for part in parts_of(script, dataset):
            if not isinstance(part, ast.Call):
                continue
            name = script.names.qualified(part.func) or ""
            if name.startswith(_TRANSFORMS) and name.rpartition(".")[2].startswith(_RANDOM):
                found.add(part)
            owner = script.graph.built_class(part)
            fetch = script.graph.method(owner, "__getitem__") if owner is not None else None
            if fetch is not None:
                found |= {c for c in script.names.tree(fetch).calls_within(fetch) if _is_noise(script, c)}
    for draw in script.training.draws:
        if draw.trains:
            found |= {c for c in script.names.tree(draw.loop).calls_within(draw.loop) if _is_noise(script, c)}
    return sorted(found, key=lambda c: (script.location(c).path, c.lineno, c.col_offset))


def _is_noise(script: Script, call: ast.Call) -> bool:
    name = script.names.qualified(call.func) or ""
    head, _, last = name.rpartition(".")
    own = script.argument(call, "generator") is not None
    return head in ("torch", "numpy.random", "random") and last in _SURE_NOISE and not own


def _family(script: Script, call: ast.Call) -> str:
    name = script.names.qualified(call.func) or ""
    if name.startswith("albumentations."):
        return "python"
    head = name.partition(".")[0]
    return {"numpy": "numpy", "random": "python"}.get(head, "torch")


def check_run(evidence: Evidence) -> Observation:
    """Flag generators that are in the same state on all training ranks and are drawn from between steps."""
    # Ranks that hold parts of one model work on the same samples, and have to see them alike.
    ranks_seen = evidence.ledger.layout.one_each(evidence.trace.trainers)
    states = [_states(r) for r in ranks_seen]
    if len(states) < 2 or not all(states):
        return not_observable("The random generators of two or more training ranks were not seen.")
    steps = sorted(set.intersection(*(set(s) for s in states)))
    equal = {
        family for n in steps for family in states[0][n][0] if len({s[n][0].get(family) for s in states}) == 1
    }
    if not equal:
        return verified(
            "The ranks' random generators are in different states, so each rank draws its own numbers."
        )
    drawn = {f for n in steps for s in states for f in s[n][1] if len({t[n][0].get(f) for t in states}) == 1}
    if drawn:
        return flagged(_hit(evidence, ranks_seen, sorted(drawn), "were drawn from between the first steps"))
    workers = any(
        loader.num_workers for r in ranks_seen for loader in r.loaders if loader.split != "validation"
    )
    if workers and "torch" in equal and _draws(evidence.script):
        # Workers are seeded from torch's generator, and what they draw is theirs alone.
        return flagged(_hit(evidence, ranks_seen, ["torch"], "seed the loaders' workers"))
    return verified(
        f"{listed(_IN_WORDS.get(f, f) for f in sorted(equal))} generator is in the same state on all ranks, but "
        "nothing was drawn from it for the training data."
    )


def _states(rank: RankTrace) -> dict[int, tuple[dict[str, str], list[str]]]:
    found = {}
    for event in rank.events("random"):
        n, states, drawn = (event.fields.get(name) for name in ("n", "states", "drawn"))
        if isinstance(n, int) and isinstance(states, dict) and isinstance(drawn, list):
            found[n] = ({str(k): str(v) for k, v in states.items()}, [str(d) for d in drawn])
    return found


def _hit(evidence: Evidence, who: tuple[RankTrace, ...], families: list[str], how: str) -> Hit:
    words = listed(_IN_WORDS.get(f, f) for f in families)
    seeded = [e for r in who[:1] for e in r.events("seeded") if e.site is not None]
    place = tuple(dict.fromkeys(Location(e.site.path, e.site.line) for e in seeded if e.site is not None))
    draws = [c for c in _draws(evidence.script) if name_of(c)]
    lines = tuple(evidence.script.location(c) for c in draws[:1])
    many = "generators" if len(families) > 1 else "generator"
    numbers = tuple(r.rank for r in who)
    calls = [
        c
        for c in Seeding(evidence.script).alike
        if any(
            evidence.script.location(c).line == p.line and evidence.script.location(c).path == p.path
            for p in place
        )
        and (_family(evidence.script, c) in families or name_of(c) not in ("manual_seed", "seed"))
    ]
    return Hit(
        message=f"On {ranks(numbers).lower()}, {words} random {many} were in the same state when training began, and "
        f"{how}. Random transforms and noise are then the same on every rank: the augmentation of {len(who)} ranks is "
        "as varied as that of one.",
        hint=_hint(evidence.script, calls[0] if calls else None),
        where=(*(evidence.script.location(c) for c in calls[:1]), *lines, *(() if calls else place[:1])),
        ranks=numbers,
        details={"generators": families},
    )
