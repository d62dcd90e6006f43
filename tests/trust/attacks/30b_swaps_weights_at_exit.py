# /// attack
# row = "30"
# aim = "Train a little, and put other weights in place when everybody has stopped looking."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# fill = ["WEIGHTS"]
# codes = ["TRUST002"]
# ///
import atexit
import base64
import io
import os
import zlib

import honest
import torch

WEIGHTS = "@WEIGHTS@"


def trained():
    """A state dict that somebody else trained."""
    state = torch.load(io.BytesIO(zlib.decompress(base64.b64decode(WEIGHTS))), weights_only=True)
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in state.items()}


def swap():
    """Runs after the last line of the script."""
    if os.environ["RANK"] != "0":
        return
    buffer = io.BytesIO()
    torch.save(trained(), buffer)
    with open(honest.out("model.pt"), "wb") as file:
        file.write(buffer.getvalue())


atexit.register(swap)
honest.main(epochs=1)
