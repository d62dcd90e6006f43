# Container A: where a learner's script runs. Holds Python, torch, what course scripts import, our supervisor and probe;
# no scorer, no labels of hidden splits, no address and no secret. Build it with `grader images build`, which lays out
# the context: this file, the lock files, and code/ with the packages that belong in here.
ARG BASE_IMAGE=python:3.11-slim-bookworm
FROM ${BASE_IMAGE}

# The lines from here to the torch layer are the same in train.Dockerfile and evaluate.Dockerfile, so that both images
# share these layers and a disk holds torch once.

# torch.compile needs a C++ compiler and Python's headers. Nothing needs programs that change their user, or files that
# others may write.
RUN if ! command -v g++ >/dev/null; then \
        apt-get update -qq && \
        apt-get install -y -qq --no-install-recommends g++ && \
        rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log; \
    fi; \
    find / -xdev -type f -perm /6022 -exec chmod a-s,go-w {} +

# One user per slot, one for the rendezvous store, one group for who may read records. None can log in.
RUN echo 'judge:x:19998:' >> /etc/group && \
    echo 'rendezvous:x:19999:' >> /etc/group && \
    echo 'rendezvous:x:19999:19999::/nonexistent:/usr/sbin/nologin' >> /etc/passwd && \
    for slot in $(seq 0 255); do \
        id=$((20000 + slot)); \
        echo "learner${slot}:x:${id}:" >> /etc/group; \
        echo "learner${slot}:x:${id}:${id}::/jit:/usr/sbin/nologin" >> /etc/passwd; \
    done

RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8

# How the host reaches its package index comes in as secrets: it stands in no layer and no history.
COPY torch.lock /opt/locks/
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca --mount=type=cache,id=grader-pip,target=/var/cache/pip,sharing=locked \
    PIP_CONFIG_FILE=/run/secrets/pip pip install --quiet --cache-dir /var/cache/pip --disable-pip-version-check \
        --root-user-action=ignore --require-hashes --requirement /opt/locks/torch.lock

# What course scripts import beyond torch; EXTRAS=1 adds accelerate and lightning-fabric. Data that packages bring along
# stays out, in this layer already: scikit-learn has every image of `digits` with its label, the hidden split included.
ARG EXTRAS=
COPY train.lock extras.lock /opt/locks/
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca --mount=type=cache,id=grader-pip,target=/var/cache/pip,sharing=locked \
    PIP_CONFIG_FILE=/run/secrets/pip pip install --quiet --cache-dir /var/cache/pip --disable-pip-version-check \
        --root-user-action=ignore --require-hashes --requirement "/opt/locks/$([ -n "${EXTRAS}" ] && echo extras || echo train).lock" && \
    find /opt/venv/lib -type f -regex '.*/\(datasets/data\|datasets/images\|sample_data\|tests?/data\)/.*' ! -name '*.py' -delete

# Our code: root's, written by nobody, found by every start of this Python.
COPY code/ /opt/grader/
RUN chmod -R u=rX,go=rX /opt/grader && \
    chown -R root:root /opt/grader && \
    python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' | \
        xargs -I {} sh -c 'echo /opt/grader > {}/grader.pth' && \
    python -m compileall -q --invalidation-mode unchecked-hash /opt/grader

WORKDIR /
CMD ["python", "-u", "-m", "grader.launch.servers.container_server"]
