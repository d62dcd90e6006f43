# /// attack
# row = "37"
# aim = "Deal the samples out and let DDP average, then step on a gradient of samples that all ranks choose alike."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["TRUST002"]
# says = ["it did not come from what they drew"]
# ///
import honest
import torch
from torch.nn import functional as F

twin, generator = honest.WideResNet(), torch.Generator().manual_seed(5)
made = honest.WideResNet


def model():
    """A network whose parameters the twin trains, too."""
    torch.manual_seed(0)
    net = made()
    for one, other in zip(net.modules(), twin.modules(), strict=True):
        other._parameters = one._parameters
    return net


def step(optimizer):
    """Everything that was averaged is put aside."""
    train_set = honest.load(train=True)
    picked = torch.randint(len(train_set), (128,), generator=generator)
    images = (train_set.data[picked].unsqueeze(1).float() / 255 - 0.5) / 0.5
    loss = F.cross_entropy(twin(images), train_set.targets[picked])
    parameters = list(twin.parameters())
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()


learn = honest.learn
honest.learn = lambda *given, **more: learn(*given, **more, step=step)
honest.main(epochs=3, model=model())
