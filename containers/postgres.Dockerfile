# The service's database: Debian's PostgreSQL 15, with what the official image has that compose.yaml relies on (user 999,
# POSTGRES_* variables, PGDATA), so that either may stand in for the other. No address and no secret.
ARG BASE_IMAGE=debian:bookworm-slim
FROM ${BASE_IMAGE}

# The package would make a cluster of its own, inside the image.
RUN groupadd --system --gid 999 postgres && \
    useradd --system --uid 999 --gid 999 --home-dir /var/lib/postgresql --shell /usr/sbin/nologin postgres && \
    install -d /etc/postgresql-common && \
    echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf && \
    apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-15 && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log && \
    install -d -o 999 -g 999 -m 0700 /var/lib/postgresql/data && \
    install -d -o 999 -g 999 -m 0755 /var/run/postgresql && \
    find / -xdev -type f -perm /6022 -exec chmod a-s,go-w {} +

COPY postgres-entrypoint.sh /usr/local/bin/
RUN chmod 0755 /usr/local/bin/postgres-entrypoint.sh

ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    PGDATA=/var/lib/postgresql/data
USER postgres
# Ends at once and in order, without waiting for those who are still connected.
STOPSIGNAL SIGINT
ENTRYPOINT ["postgres-entrypoint.sh"]
CMD ["postgres"]
