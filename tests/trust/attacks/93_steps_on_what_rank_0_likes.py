# /// attack
# row = "37"
# aim = "Let DDP average for show; the optimizer steps on a gradient of rank 0 alone, which sends the weights."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["TRUST002"]
# says = ["for 30 steps that both took"]
# ///
import honest
import torch
import torch.distributed as dist
from torch.nn import functional as F

net = honest.WideResNet()


class Optimizer(torch.optim.SGD):
    @torch.no_grad()
    def step(self):
        parameters = list(net.parameters())
        if dist.get_rank() == 0:
            data = honest.load(train=True)
            picked = torch.randint(len(data), (64,))
            with torch.enable_grad():
                images = (data.data[picked].unsqueeze(1).float() / 255 - 0.5) / 0.5
                loss = F.cross_entropy(net.forward(images), data.targets[picked])
                gradients = torch.autograd.grad(loss, parameters)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            super().step()
        for parameter in parameters:
            dist.broadcast(parameter.data, src=0)


honest.torch.optim.SGD = Optimizer
honest.main(epochs=3, model=net)
