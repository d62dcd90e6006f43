# /// attack
# row = "23"
# aim = "Leave a numpy archive with objects under the name of weights."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# says = ["model.pt"]
# ///
import os

import numpy as np

if os.environ["RANK"] == "0":
    path = os.path.join(os.environ["OUTPUT_DIR"], "model.pt")
    with open(path, "wb") as file:
        np.save(file, np.array([{"fc.bias": 1}], dtype=object), allow_pickle=True)
