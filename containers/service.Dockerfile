# The web service and its workers: this package with the course's tasks, and no torch, since training and scoring happen
# in the other two images. No address and no secret. Build it with `grader images build`, which lays out the context:
# this file, the lock file, and code/ with the package, tasks, skeletons and the recipes of all images.
ARG BASE_IMAGE=python:3.11-slim-bookworm
FROM ${BASE_IMAGE}

# `grader db backup` and `restore` call PostgreSQL's own programs, and courses come from Git addresses.
RUN apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        git openssh-client postgresql-client-15 && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log && \
    find / -xdev -type f -perm /6022 -exec chmod a-s,go-w {} +
# The group may write where the user may: the worker, who is another user for the engine's sake, is of that group.
RUN echo 'grader:x:19990:' >> /etc/group && \
    echo 'grader:x:19990:19990::/var/lib/grader:/usr/sbin/nologin' >> /etc/passwd && \
    install -d -o 19990 -g 19990 -m 2770 /var/lib/grader

RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8

# How the host reaches its package index comes in as secrets: it stands in no layer and no history.
COPY service.lock /opt/locks/
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca --mount=type=cache,id=grader-pip,target=/var/cache/pip,sharing=locked \
    PIP_CONFIG_FILE=/run/secrets/pip pip install --quiet --cache-dir /var/cache/pip --disable-pip-version-check \
        --root-user-action=ignore --require-hashes --requirement /opt/locks/service.lock

# Our code: root's, written by nobody, found by every start of this Python.
COPY code/ /opt/grader/
RUN chmod -R u=rX,go=rX /opt/grader && \
    chown -R root:root /opt/grader && \
    python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' | \
        xargs -I {} sh -c 'echo /opt/grader > {}/grader.pth' && \
    python -m compileall -q --invalidation-mode unchecked-hash /opt/grader

# State (prepared data, calibrations, attempts) lives in a volume.
ENV GRADER_STATE_DIR=/var/lib/grader \
    GRADER_RUNTIME=docker
WORKDIR /var/lib/grader
USER grader
ENTRYPOINT ["python", "-m", "grader"]
CMD ["--help"]
