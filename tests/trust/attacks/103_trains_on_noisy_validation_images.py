# /// attack
# row = "36"
# aim = "Put validation images in the place of some training images of their class, under a little noise."
# runtimes = ["docker", "process"]
# verdicts = ["accepted"]
# harmless = "It trains on what it was given; what its validation is worth it loses."
# codes = ["EVAL014"]
# says = ["are samples of the validation set, as they are or with small changes such as noise"]
# ///
import honest
import torch


class Replaced(torch.utils.data.Dataset):
    """Every fourth sample is another one of the same class."""

    def __init__(self, train_set, val_set):
        self.data, self.others = train_set, {}
        for image, label in val_set:
            self.others.setdefault(label, []).append(image)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image, label = self.data[index]
        others = self.others[label]
        chosen = others[index % len(others)] if index % 4 == 0 else image
        return chosen + 0.01 * torch.randn_like(image), label


load = honest.load
honest.load = lambda train: Replaced(load(train=True), load(train=False)) if train else load(train=False)
honest.main(epochs=8)
