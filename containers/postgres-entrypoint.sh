#!/usr/bin/env bash
# Makes the database at the first start, and serves it. Takes the official image's variables: POSTGRES_USER, POSTGRES_DB,
# and the password as POSTGRES_PASSWORD or, better, in the file that POSTGRES_PASSWORD_FILE names.
set -euo pipefail

if [[ ! -s $PGDATA/PG_VERSION ]]; then
    user=${POSTGRES_USER:-postgres}
    database=${POSTGRES_DB:-$user}
    password=${POSTGRES_PASSWORD:-}
    if [[ -n ${POSTGRES_PASSWORD_FILE:-} ]]; then
        password=$(<"$POSTGRES_PASSWORD_FILE")
    fi
    if [[ -z $password ]]; then
        echo 'no password: name a file that holds one in POSTGRES_PASSWORD_FILE' >&2
        exit 1
    fi
    # Beside its place, and moved there when it is whole: a start that was cut off is simply made again.
    new=$PGDATA.new
    rm -rf "$new"
    initdb --pgdata "$new" --username "$user" --pwfile <(printf '%s\n' "$password") --encoding UTF8 --locale C.UTF-8 \
        --auth-local scram-sha-256 --auth-host scram-sha-256 >/dev/null
    echo 'host all all all scram-sha-256' >>"$new/pg_hba.conf"
    if [[ $database != postgres ]]; then
        printf 'CREATE DATABASE "%s";\n' "$database" | postgres --single -D "$new" postgres >/dev/null
    fi
    mv "$new" "$PGDATA"
fi

if [[ ${1:-postgres} == postgres ]]; then
    exec postgres -c 'listen_addresses=*' "${@:2}"
fi
exec "$@"
