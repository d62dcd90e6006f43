# /// attack
# row = "20"
# aim = "Report a list in a list, half a million times."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# says = ["nested more than"]
# ///
import os

if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
        file.write('{"schema": 1, "epochs": ' + "[" * 500_000 + "]" * 500_000 + "}")
