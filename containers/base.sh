#!/usr/bin/env bash
# The base of our images where no registry can be reached: Debian's own packages in a folder, imported into the engine.
# Usage: base.sh NAME[:TAG]. Needs mmdebstrap, root or user namespaces, and Debian's mirror as mmdebstrap finds it.
set -euo pipefail
name=$1
docker=${DOCKER:-docker}

# Imported without a name first: a half archive must never be taken for a base.
id=$(
    mmdebstrap --quiet --variant=minbase \
        --include=python3,python3-venv,python3-dev,g++,ca-certificates \
        --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        bookworm - |
        "$docker" import --change "LABEL grader.image=base grader.tag=${name##*:}" --change 'CMD ["bash"]' -
)
"$docker" tag "$id" "$name"
