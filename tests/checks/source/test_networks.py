"""What the engine knows of networks, of calls that take all ranks, and of where values go."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from grader.checks.source.models.networks import Holds
from grader.checks.source.script import Script
from grader.checks.source.values.data_flow import reads_after

Make = Callable[..., Script]

NETWORKS = """
    import torch, torchvision
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    from elsewhere import build

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4), nn.LayerNorm(4)])

        def forward(self, x):
            return self.layers[0](x)

    class Normed(Plain):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(4)

    class Sometimes(nn.Module):
        def __init__(self, flash):
            super().__init__()
            if not flash:
                self.register_buffer("mask", torch.zeros(4))

        def forward(self, x):
            return nn.functional.dropout(x, training=self.training)

    model = DDP({made})
    here(model(batch))
"""


@pytest.mark.parametrize(
    ("made", "buffers", "mode"),
    [
        ("Plain()", Holds.NO, Holds.NO),
        ("Normed()", Holds.YES, Holds.YES),
        ("Sometimes(True)", Holds.UNKNOWN, Holds.YES),
        ("nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))", Holds.NO, Holds.YES),
        ("nn.SyncBatchNorm.convert_sync_batchnorm(Normed())", Holds.YES, Holds.YES),
        ("torchvision.models.resnet18()", Holds.YES, Holds.YES),
        ("torchvision.models.vit_b_16()", Holds.UNKNOWN, Holds.YES),
        ("build()", Holds.UNKNOWN, Holds.UNKNOWN),
        ("Normed(), broadcast_buffers=False", Holds.NO, Holds.YES),
    ],
)
def test_what_a_network_holds(script: Make, made: str, buffers: Holds, mode: Holds) -> None:
    parsed = script(NETWORKS.replace("{made}", made))
    call = next(c for c in parsed.all_calls() if isinstance(c.func, ast.Name) and c.func.id == "model")
    network = parsed.networks.called(call)
    assert network is not None
    assert parsed.networks.buffers(network) is buffers
    assert parsed.networks.minds_mode(network) is mode


def test_losses_helpers_and_methods_are_no_networks(script: Make) -> None:
    parsed = script("""
        from torch import nn

        def model_name(x):
            return x

        criterion = nn.CrossEntropyLoss()
        model = nn.Linear(2, 2)
        criterion(a, b)
        model_name(a)
        model.to(a)
        model.state_dict(a)
    """)
    assert [ast.unparse(c) for c in parsed.all_calls() if parsed.networks.called(c) is not None] == []


def test_calls_of_libraries_that_take_all_ranks(script: Make) -> None:
    parsed = script("""
        import torch.distributed.checkpoint as dcp
        from accelerate import Accelerator
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

        accelerator = Accelerator()
        model = FSDP(net)

        def finish(accelerator, path):
            accelerator.save_state(path)
            accelerator.save(model, path)

        finish(accelerator, "a")
        model(x)
        net(x)
        model.state_dict()
        dcp.save(model, "b")
    """)
    assert sorted(parsed.collectives.direct.values()) == [
        "FSDP forward", "FSDP state_dict", "save", "save_state",
    ]  # fmt: skip


def test_a_value_is_followed_through_names_and_up_into_callers(script: Make) -> None:
    parsed = script("""
        import torch.distributed as dist

        def total(value):
            dist.all_reduce(value)
            value /= 2
            return value.item()

        def report():
            amount = total(start)
            shown = amount + 1
            print(shown)
            other = 3
            print(other)
    """)
    call = parsed.calls("torch.distributed.all_reduce")[0]
    lines = {n.lineno for n in reads_after(parsed, call.args[0], call)}
    assert lines == {6, 7, 10, 11, 12}


@pytest.mark.parametrize(
    ("decorator", "alone"),
    [("@rank_zero_only", True), ("@once", True), ("@reported", False), ("@main_process_first", False)],
)
def test_decorators_that_keep_a_function_from_the_other_ranks(
    script: Make, here: Any, decorator: str, alone: bool
) -> None:
    parsed = script(f"""
        import torch.distributed as dist
        from library import main_process_first, rank_zero_only

        def once(function):
            def wrapper(*args):
                if dist.get_rank() == 0:
                    function(*args)
            return wrapper

        def reported(function):
            def wrapper(*args):
                function(*args)
                if dist.get_rank() == 0:
                    print("done")
            return wrapper

        {decorator}
        def act():
            here("inside")

        act()
    """)
    assert (parsed.guards.partial(here(parsed, "inside")) is not None) is alone
