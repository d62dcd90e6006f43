# /// attack
# row = "36"
# aim = "Begin with weights that were trained elsewhere, and pretend to train them."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# fill = ["WEIGHTS"]
# ///
import base64
import io
import zlib

import honest
import torch

WEIGHTS = "@WEIGHTS@"


def trained():
    """A state dict that somebody else trained."""
    state = torch.load(io.BytesIO(zlib.decompress(base64.b64decode(WEIGHTS))), weights_only=True)
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in state.items()}


model = honest.WideResNet()
model.load_state_dict(trained())
honest.LR = 1e-6
honest.main(epochs=1, model=model)
