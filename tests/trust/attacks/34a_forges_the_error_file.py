# /// attack
# row = "34"
# aim = "Write torchrun's error file: hostile, broken, huge; and somebody else's last words."
# runtimes = ["docker"]
# verdicts = ["crashed", "out_of_memory"]
# endings = ["crashed", "out_of_memory"]
# ///
import os
import sys

with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    file.write('{"message": {"message": "<script>alert(1)</script>\\u0000", "extraInfo": {"py_callstack": "' + "x" * 1_000_000 + '"}}')
print("Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\ntorch.OutOfMemoryError: CUDA out of memory", file=sys.stderr)
sys.exit(1)
