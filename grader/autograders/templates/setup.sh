#!/usr/bin/env bash
# Gradescope runs this once, as root, while it builds the image; the archive lies in /autograder/source by then.
set -euo pipefail
cd /autograder/source

python=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    # Ubuntu's default may be older; it has this one as well.
    apt-get install -y -qq python3.11 python3.11-venv
    python=python3.11
elif ! python3 -c 'import ensurepip'; then
    apt-get install -y -qq python3-venv
fi
"$python" -m venv /autograder/venv
venv=/autograder/venv/bin/python
# PyTorch's own builds for CPUs are a tenth as large as those for GPUs, of which there are none here.
export PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
"$venv" -m pip install --quiet --no-cache-dir --disable-pip-version-check --requirement requirements.txt
# The grader itself lies beside this file, exactly as it judged when the archive was made.
echo /autograder/source >"$("$venv" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/grader.pth"

. ./settings.sh
"$venv" -m grader data prepare "$GRADER_DATASET"
"$venv" -m grader tasks {{task}} >/dev/null
