# /// attack
# row = "37"
# aim = "An honest beginning; then rank 0 trains the same network by hand on all samples, and sends the weights to all."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["TRUST002"]
# says = ["what became of the others, nothing tells"]
# ///
import honest
import torch.distributed as dist

learn = honest.learn


def train(model, *given):
    """What is told, and what is done."""
    losses = learn(model, *given)
    if dist.get_rank() == 0:
        honest.further(model.module, epochs=6)
    for value in model.module.state_dict().values():
        dist.broadcast(value, src=0)
    return losses


honest.learn = train
honest.main(epochs=3)
