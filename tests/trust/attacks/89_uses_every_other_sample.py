# /// attack
# row = "37"
# aim = "Draw every index of one's share, and hand out its even neighbour: half of the samples are never used."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["TRUST002"]
# says = ["of the samples that came for them are different"]
# ///
import honest


class FashionMNIST(honest.datasets.FashionMNIST):
    def __getitem__(self, index):
        return super().__getitem__(index - index % 2)

    def __getitems__(self, indices):
        return [self[index] for index in indices]


honest.datasets.FashionMNIST = FashionMNIST
honest.main(epochs=3)
