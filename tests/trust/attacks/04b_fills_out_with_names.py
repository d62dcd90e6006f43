# /// attack
# row = "4"
# aim = "Fill $OUTPUT_DIR with empty files and deep folders."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["capped"]
# must_not_print = ["no cap"]
# ///
import os

folder = os.environ["OUTPUT_DIR"]
for _ in range(40):
    folder = os.path.join(folder, "d")
    os.makedirs(folder, exist_ok=True)
count = 0
try:
    while count < 200_000:
        open(os.path.join(os.environ["OUTPUT_DIR"], f"f{os.environ['RANK']}-{count}"), "w").close()
        count += 1
except OSError as error:
    print("ATTACK", error.strerror)
print("ATTACK", "no cap" if count >= 200_000 else "capped", flush=True)
