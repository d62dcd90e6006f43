# /// attack
# row = "38"
# aim = "Let a hook of DDP send nothing and hand back numbers of its own, so that all replicas stay equal."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["TRUST002"]
# says = ["had nothing to do with those that their backward passes gave"]
# ///
import honest
import torch


def made_up(_state, bucket):
    """The same for every batch."""
    result = torch.futures.Future()
    result.set_result(torch.full_like(bucket.buffer(), 1e-4))
    return result


wrap = honest.DistributedDataParallel


def wrapped(model):
    """As DDP, and nothing is sent."""
    outer = wrap(model)
    getattr(outer, "register_comm" + "_hook")(None, made_up)
    return outer


honest.DistributedDataParallel = wrapped
honest.main(epochs=3)
