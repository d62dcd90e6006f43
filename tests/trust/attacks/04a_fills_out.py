# /// attack
# row = "4"
# aim = "Fill $OUTPUT_DIR by bytes."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_not_print = ["no quota"]
# must_print = ["quota holds"]
# ///
import os

total = 0
try:
    with open(os.path.join(os.environ["OUTPUT_DIR"], f"big{os.environ['RANK']}"), "wb") as file:
        while total < 1 << 31:
            total += file.write(b"x" * (4 << 20))
except OSError as error:
    print("ATTACK", error.strerror)
print("ATTACK", "no quota" if total > 300 << 20 else "quota holds", flush=True)
