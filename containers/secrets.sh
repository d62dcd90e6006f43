#!/usr/bin/env bash
# Makes the secrets that compose.yaml mounts, each once; what is there stays. Usage: secrets.sh FOLDER
set -euo pipefail
folder=$1
umask 077
mkdir -p "$folder"
# Nobody else enters the folder. The files themselves are read in containers by users that this host does not know.
chmod 0700 "$folder"

make() {
    [[ -s $folder/$1 ]] && return
    printf '%s\n' "$2" >"$folder/.$1"
    chmod 0644 "$folder/.$1"
    mv "$folder/.$1" "$folder/$1"
    echo "made $folder/$1"
}
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

make postgres_password "$(random)"
make database_url "postgresql://grader:$(<"$folder/postgres_password")@postgres/grader"
make secret_key "$(random)"
# Nobody's secret yet: docs/operators.md says what goes in.
make sign_on "# Who else vouches for people."
# The mail server's, which nobody can make up: empty until it is written there.
make smtp_password ""
[[ -s $folder/lti_key ]] || command -v openssl >/dev/null || { echo "openssl is needed for $folder/lti_key" >&2; exit 1; }
make lti_key "$([[ -s $folder/lti_key ]] || openssl genrsa 2048 2>/dev/null)"
