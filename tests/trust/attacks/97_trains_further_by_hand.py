# /// attack
# row = "38"
# aim = "One honest epoch; then each rank trains by itself and by hand, and rank 0's weights become everybody's."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["TRUST002"]
# says = ["are none that training went through"]
# ///
import honest
import torch
import torch.distributed as dist
from torch.nn import functional as F

learn = honest.learn


def go_on(net):
    """By hand, on all samples, on every rank for itself."""
    data, parameters = honest.load(train=True), list(net.parameters())
    images = (data.data.unsqueeze(1).float() / 255 - 0.5) / 0.5
    for _ in range(5):
        for picked in torch.randperm(len(images)).split(64):
            loss = F.cross_entropy(net(images[picked]), data.targets[picked])
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                parameter.data.sub_(0.05 * gradient)


def train(model, *given):
    """Two epochs for all to see, and five that nobody sees."""
    losses = learn(model, *given)
    go_on(model.module)
    for value in model.module.state_dict().values():
        dist.broadcast(value, src=0)
    return losses


honest.learn = train
honest.main(epochs=2)
