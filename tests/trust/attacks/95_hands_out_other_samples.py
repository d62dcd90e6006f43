# /// attack
# row = "37"
# aim = "Draw one's share, and train every rank on the same samples in the same order, with a little noise over them."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["TRUST002"]
# says = ["came with another label the next time"]
# ///
import honest
import torch


class FashionMNIST(honest.datasets.FashionMNIST):
    calls = 0

    def __getitem__(self, index):
        FashionMNIST.calls += 1
        image, label = super().__getitem__(FashionMNIST.calls % len(self))
        return image + 0.01 * torch.randn_like(image), label

    def __getitems__(self, indices):
        return [self[index] for index in indices]


honest.datasets.FashionMNIST = FashionMNIST
honest.main(epochs=3)
