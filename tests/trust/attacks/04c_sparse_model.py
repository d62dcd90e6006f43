# /// attack
# row = "4"
# aim = "Leave a sparse model.pt that claims 900 MB."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# ///
import os

if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["OUTPUT_DIR"], "model.pt"), "wb") as file:
        file.truncate(900 << 20)
