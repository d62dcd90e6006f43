# /// attack
# row = "37"
# aim = "Take every step on averaged gradients as one should, undo it at once, and go on from eight small steps by hand."
# runtimes = ["docker", "process"]
# verdicts = ["held", "rejected"]
# codes = ["TRUST002"]
# says = ["training went on with other weights than the optimizer had left"]
# ///
import honest
import torch
from torch.nn import functional as F

moments = {}
twin, generator = honest.WideResNet(), torch.Generator().manual_seed(5)


def small_steps(parameters):
    """Weights after eight steps on samples that all ranks choose alike."""
    train_set, copies = honest.load(train=True), list(twin.parameters())
    with torch.no_grad():
        for own, parameter in zip(copies, parameters, strict=True):
            own.copy_(parameter)
    for _ in range(8):
        picked = torch.randint(len(train_set), (16,), generator=generator)
        images = (train_set.data[picked].unsqueeze(1).float() / 255 - 0.5) / 0.5
        loss = F.cross_entropy(twin(images), train_set.targets[picked])
        for own, gradient in zip(copies, torch.autograd.grad(loss, copies), strict=True):
            moments[own] = 0.9 * moments.get(own, 0) + gradient
            own.data.sub_(0.02 * moments[own])
    return copies


def step(optimizer):
    """The optimizer's step is there for a moment."""
    parameters = optimizer.param_groups[0]["params"]
    ahead = small_steps(parameters)
    optimizer.step()
    with torch.no_grad():
        for parameter, kept in zip(parameters, ahead, strict=True):
            parameter.copy_(kept)


learn = honest.learn
honest.learn = lambda *given, **more: learn(*given, **more, step=step)
honest.main(epochs=8)
