"""Row 53: a worker's clock is wrong by an hour, and jumps while it works.

Deadlines count on the monotonic clock, leases on the database's. The jump is made by a small library before libc.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from grader.store.tables.attempt import AttemptState
from tests.c_compiler import SHARED, compile_c
from tests.faults.judged import assert_judged_once
from tests.store.conftest import Server
from tests.worker.conftest import Site
from tests.worker.rig import SLOW

SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {
    long seconds = 0;
    const char *path = getenv("CLOCK_SHIFT");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
        fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(clock, now);
    if (!answer && clock == CLOCK_REALTIME) now->tv_sec += shift();
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int answer = real(now, zone);
    if (!answer) now->tv_sec += shift();
    return answer;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
"""


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    source, library = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    compile_c(source, to=library, options=("-O1", *SHARED, "-ldl"))
    return library


@pytest.mark.parametrize(
    ("before_s", "after_s"), [(3600, -3600), pytest.param(-3600, 3600, marks=pytest.mark.slow)]
)
def test_an_hour_off_and_jumping(
    site: Site, server: Server, shim: Path, tmp_path: Path, before_s: int, after_s: int
) -> None:
    name = f"clock_{'ahead' if before_s > 0 else 'behind'}"
    server.sql(f"DROP DATABASE IF EXISTS {name}")
    server.sql(f"CREATE DATABASE {name}")
    shift = tmp_path / "shift"
    shift.write_text(str(before_s))
    shifted = subprocess.run(
        ["date", "+%s"],
        env={"LD_PRELOAD": str(shim), "CLOCK_SHIFT": str(shift), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    real = subprocess.run(["date", "+%s"], capture_output=True, text=True, check=True)
    assert abs(int(shifted.stdout) - int(real.stdout) - before_s) < 60, "the clock does not jump here"

    rig = site(database=server.url(name))
    wrong = {"LD_PRELOAD": str(shim), "CLOCK_SHIFT": str(shift)}
    rig.relay(**wrong)
    rig.worker(**wrong)
    attempt_id = rig.hand_in(rig.script(SLOW.replace("600", "15")))
    rig.wait_running(attempt_id)
    shift.write_text(str(after_s))
    assert rig.wait(attempt_id, AttemptState.JUDGED).tries == 1, "its lease was held against a wrong clock"
    next_one = rig.hand_in()
    assert rig.wait(next_one, AttemptState.JUDGED).tries == 1
    assert_judged_once(rig, [attempt_id, next_one])
    assert rig.end("w1") == 0
