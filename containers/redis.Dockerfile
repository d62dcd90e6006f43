# The broker that hints for workers pass through: Debian's Redis, with what the official image has that compose.yaml
# relies on (user 999, /data), so that either may stand in for the other. No address and no secret.
ARG BASE_IMAGE=debian:bookworm-slim
FROM ${BASE_IMAGE}

RUN groupadd --system --gid 999 redis && \
    useradd --system --uid 999 --gid 999 --home-dir /data --no-create-home --shell /usr/sbin/nologin redis && \
    apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log && \
    install -d -o 999 -g 999 -m 0750 /data && \
    find / -xdev -type f -perm /6022 -exec chmod a-s,go-w {} +

WORKDIR /data
USER redis
CMD ["redis-server", "--bind", "*", "--protected-mode", "no"]
