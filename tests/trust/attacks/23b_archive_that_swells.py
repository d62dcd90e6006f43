# /// attack
# row = "23"
# aim = "Leave a model.pt of a megabyte that unpacks to a gigabyte."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# says = ["model.pt"]
# ///
import os
import zipfile

if os.environ["RANK"] == "0":
    with zipfile.ZipFile(os.path.join(os.environ["OUTPUT_DIR"], "model.pt"), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("archive/version", "3")
        file.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        with file.open("archive/data/0", "w", force_zip64=True) as member:
            for _ in range(192):
                member.write(bytes(4 << 20))
