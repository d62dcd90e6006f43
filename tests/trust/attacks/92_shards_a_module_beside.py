# /// attack
# row = "37"
# aim = "Shard a module that nobody trains, so that ranks seem to hold parts that differ by right; train apart."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["GRAD001"]
# ///
import honest
from torch import nn
from torch.distributed.fsdp import fully_shard


def wrap(model):
    """Something is sharded."""
    fully_shard(nn.Linear(4, 4))
    return model


honest.DistributedDataParallel = wrap
honest.main(epochs=3)
