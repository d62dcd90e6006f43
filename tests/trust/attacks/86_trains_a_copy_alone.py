# /// attack
# row = "38"
# aim = "Two epochs as one should, then rank 0 trains a copy by itself, without an optimizer, and saves that."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# codes = ["GRAD001"]
# says = ["on a model that no other rank trains"]
# ///
import os

import honest

model = honest.main(epochs=2)
if os.environ["RANK"] == "0":
    honest.torch.save(honest.alone(model, epochs=6).state_dict(), honest.out("model.pt"))
