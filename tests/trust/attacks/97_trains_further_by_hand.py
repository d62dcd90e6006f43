# /// attack
# row = "38"
# aim = "Two honest epochs; then each rank trains by itself and by hand, and rank 0's weights become everybody's."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["TRUST002"]
# says = ["though nobody stepped"]
# ///
import honest
import torch.distributed as dist

learn = honest.learn


def train(model, *given):
    """Two epochs for all to see, and five that nobody sees."""
    losses = learn(model, *given)
    honest.further(model.module, epochs=5)
    for value in model.module.state_dict().values():
        dist.broadcast(value, src=0)
    return losses


honest.learn = train
honest.main(epochs=2)
