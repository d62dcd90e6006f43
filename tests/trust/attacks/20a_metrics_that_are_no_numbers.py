# /// attack
# row = "20"
# aim = "Report NaN and infinities."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# says = ["no JSON number"]
# ///
import os

if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
        file.write('{"schema": 1, "epochs": [{"val_accuracy": NaN, "val_loss": -Infinity, "train_loss": 1e999}]}')
