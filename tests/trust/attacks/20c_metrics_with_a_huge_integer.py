# /// attack
# row = "20"
# aim = "Report an accuracy of half a million digits, twice."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# says = ["metrics.json"]
# ///
import os

if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
        file.write('{"schema": 1, "epochs": [{"val_accuracy": 1' + "0" * 500_000 + ', "val_accuracy": 1.0}]}')
