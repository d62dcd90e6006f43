"""The scorer's own process: waits warm, reads requests on its input, scores each in a child of its own.

Imports the task's `evaluate.py` and never anything of a submission, whose files are data to it. What it prints to its
output is answers alone. A file that lies can cost a child, never the scorer: the child has limits on memory and time,
says before it touches the learner's file and when it is done with it, and is then known to be at fault or not.

Messages, one JSON object per line. In: `{"op": "warm", …}` or `{"op": "score", …}` with the fields of `Request`; out:
`{"ready": true}` once, then `{"evaluation": {…}}`, `{"task_error": "…"}` or `{"infra_error": "…"}` per request.
"""

from __future__ import annotations

import json
import math
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from grader.evaluate.audit.audited_steps import WALL_S as AUDITING_S
from grader.evaluate.audit.audited_steps import audited
from grader.evaluate.audit.compared_pictures import WALL_S as COMPARING_S
from grader.evaluate.audit.compared_pictures import compared_pictures
from grader.evaluate.audit.compared_texts import compared_texts
from grader.evaluate.scorer.author_faults import TaskFaultError
from grader.evaluate.scorer.examination import examine_run, prove_examination
from grader.evaluate.scorer.other_scores import WALL_S, other_scores
from grader.evaluate.scorer.run_scoring import READING, SCORING, ScoringCache, ScoringRequest, score_run
from grader.evaluate.scorer.task_figures import WALL_S as DRAWING_S
from grader.evaluate.scorer.task_figures import draw_run
from grader.launch.servers.gc_freeze import gc_frozen
from grader.model.evaluation import ArtifactProblem, Evaluation

_OUT_OF_MEMORY = 2
_FAILED = "failed with an exception"
Work: TypeAlias = Callable[[ScoringRequest, ScoringCache, Callable[[bytes], object]], dict[str, Any]]
"""What a child does with a request; its answer is data for JSON."""

READ_CPU_S = 15
"""Processor time for reading a stranger's files; the largest takes a second or two."""
READ_BYTES = 3 << 30
"""Memory that a child may take beyond what it was born with: room for the largest file, its copy and a network."""


def main() -> None:
    """Serve until the input ends."""
    # Whatever evaluate.py or torch prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.dont_write_bytecode = True
    with gc_frozen():
        # Imported, not used: thread pools do not survive a fork.
        import torch  # noqa: F401

    parent, cache = os.getppid(), ScoringCache()
    answers.write('{"ready": true}\n')
    pending = b""
    while (line_and_rest := _next_line(pending, parent)) is not None:
        line, pending = line_and_rest
        answers.write(json.dumps(answer_request(json.loads(line), cache, parent), allow_nan=False) + "\n")


def _next_line(pending: bytes, parent: int) -> tuple[bytes, bytes] | None:
    while b"\n" not in pending:
        readable, _, _ = select.select([0], [], [], 1.0)
        if os.getppid() != parent:
            return None
        if readable:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return None
            pending += chunk
    line, _, rest = pending.partition(b"\n")
    return line, rest


def answer_request(message: dict[str, Any], cache: ScoringCache, parent: int) -> dict[str, Any]:
    """The answer to one request; `parent`: process whose end ends the scoring."""
    try:
        names = {f.name for f in fields(ScoringRequest)}
        request = ScoringRequest(**{k: v for k, v in message.items() if k in names})
        module = cache.module(request)
        if request.examined and module not in cache.proved:
            told = _in_child(prove_examination, request, cache, parent)
            if fault := told.get("task_error") or told.get("infra_error"):
                return {"task_error": fault}
            cache.proved.add(module)
        if request.hidden:
            cache.parts(request)
        if request.op == "warm":
            return {"warm": True}
        started = time.monotonic()
        answer = _in_child(score_run, request, cache, parent)
        left_s = request.wall_s - (time.monotonic() - started)
        request = replace(request, explain=answer.pop("unexplained", ""))
        scored = "evaluation" in answer and answer["evaluation"]["problem"] is None
        if request.told_steps and scored:
            answer = _with_more(answer, audited, replace(request, wall_s=AUDITING_S), cache, parent)
        if request.told_pictures and scored:
            limited = replace(request, wall_s=COMPARING_S)
            compared = compared_texts if request.reads_folder else compared_pictures
            answer = _with_more(answer, compared, limited, cache, parent)
        if request.explain:
            answer = _with_more(answer, other_scores, replace(request, wall_s=WALL_S), cache, parent)
        if "evaluation" in answer:
            request = replace(request, run=_with_measures(request.run, answer["evaluation"]))
        if request.examined and "evaluation" in answer:
            answer = _examined(answer, replace(request, wall_s=left_s), cache, parent)
        if hasattr(module, "figures") and "evaluation" in answer:
            answer = _drawn(answer, replace(request, wall_s=DRAWING_S), cache, parent)
        return answer
    except TaskFaultError as error:
        return {"task_error": str(error)}
    except Exception as error:  # noqa: BLE001  the parent has to be told, whatever it was
        return {"infra_error": f"{type(error).__name__}: {error}"}


def _with_more(
    answer: dict[str, Any], work: Work, request: ScoringRequest, cache: ScoringCache, parent: int
) -> dict[str, Any]:
    """The same answer with what else is found about the run; without, where looking for it failed."""
    started = time.monotonic()
    told = _in_child(work, request, cache, parent)
    took = round(time.monotonic() - started, 6)
    found = answer["evaluation"]
    more = {} if "infra_error" in told or "evaluation" in told else told
    return answer | {"evaluation": found | more | {"seconds": found["seconds"] + took}}


def _with_measures(run: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The account of a run with what was measured on the validation split, as `validation_accuracy` and the like."""
    measured = {f"validation_{name}": value for name, value in found["validation"].items()}
    return run | {"numbers": run.get("numbers", {}) | measured}


def _examined(
    answer: dict[str, Any], request: ScoringRequest, cache: ScoringCache, parent: int
) -> dict[str, Any]:
    """The same answer with what the task's `examine()` says of the run; where that failed, with the reason."""
    started = time.monotonic()
    told = _in_child(examine_run, request, cache, parent)
    if "evaluation" in told:  # its files are to blame
        told = {"unread": dict.fromkeys(request.artifacts, told["evaluation"]["detail"])}
    elif "infra_error" in told:
        told = {"unexamined": f"`examine()` was given up: {told['infra_error']}"}
    found, took = answer["evaluation"], round(time.monotonic() - started, 6)
    return answer | {"evaluation": found | told | {"seconds": found["seconds"] + took}}


def _drawn(
    answer: dict[str, Any], request: ScoringRequest, cache: ScoringCache, parent: int
) -> dict[str, Any]:
    """The same answer with figures of the task's own, or with the reason why there are none."""
    found, started = answer["evaluation"], time.monotonic()
    if found["problem"] is not None:
        request = replace(request, hidden="")
    told = _in_child(draw_run, request, cache, parent)
    if "infra_error" in told or "evaluation" in told:
        told = {"undrawn": f"`figures()` was given up: {told.get('infra_error', 'its files are to blame')}"}
    took = round(time.monotonic() - started, 6)
    return answer | {"evaluation": found | told | {"seconds": found["seconds"] + took}}


def _in_child(work: Work, request: ScoringRequest, cache: ScoringCache, parent: int) -> dict[str, Any]:
    started = time.monotonic()
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_child(work, request, cache, (receiving, sending))
    os.close(sending)
    said, why = _listen(receiving, pid, started + request.wall_s, parent)
    os.close(receiving)
    seconds = round(time.monotonic() - started, 6)
    body = said.rpartition(b"\n")[2]
    if body and not why:
        answer: dict[str, Any] = json.loads(body)
        if "evaluation" in answer:
            answer["evaluation"]["seconds"] = seconds
        return answer
    # Killed or out of memory with the file in hand: it lied about its size. An exception there is a fault of ours.
    if said.startswith(READING) and SCORING not in said and why != _FAILED:
        detail = f"Reading what the run left {why or 'ended the reader'}: these are not files that training writes."
        return {"evaluation": asdict(Evaluation(ArtifactProblem.REFUSED, detail, seconds=seconds))}
    return {"infra_error": f"scoring {why or 'ended without an answer'}"}


def _be_child(
    work: Work, request: ScoringRequest, cache: ScoringCache, pipe_ends: tuple[int, int]
) -> NoReturn:
    code, (receiving, sending) = 1, pipe_ends
    try:
        os.close(receiving)
        _limit(request.wall_s)
        # This process scores one run and ends: what `evaluate()` imports on its way lies beside it, too.
        sys.path.insert(0, str(Path(request.evaluate).parent))

        def mark(progress: bytes) -> None:
            os.write(sending, progress)
            _limit_reading(progress == READING)

        answer = work(request, cache, mark)
        # No line break at its end: the last line is the answer, and a mark alone leaves it empty.
        with os.fdopen(sending, "wb") as pipe:
            pipe.write(json.dumps(answer, allow_nan=False).encode())
        code = 0
    except MemoryError:
        code = _OUT_OF_MEMORY
    except BaseException:  # noqa: BLE001  whatever it was, it ends here
        traceback.print_exc()
    finally:
        # Nothing may climb out of a forked child into its parent's code.
        os._exit(code)


def _listen(receiving: int, pid: int, deadline: float, parent: int) -> tuple[bytes, str]:
    """What the child said, and why it ended early ("" if it did not)."""
    said, why = b"", ""
    while True:
        readable, _, _ = select.select([receiving], [], [], min(1.0, max(0.0, deadline - time.monotonic())))
        if readable:
            chunk = os.read(receiving, 1 << 16)
            said += chunk
            if not chunk:
                break
        if time.monotonic() > deadline or len(said) > 4 << 20 or os.getppid() != parent:
            why = "took too long"
            os.kill(pid, signal.SIGKILL)
            break
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if why:
        return said, why
    known = {
        0: "",
        1: _FAILED,
        _OUT_OF_MEMORY: "took more memory than it may",
        -signal.SIGXCPU: "took too long",
    }
    return said, known.get(code, f"ended the process (exit code {code})")


def _limit_reading(reads: bool) -> None:
    """A shorter processor time while strangers' files are read, in which one that keeps the reader busy is given up."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = min(hard, math.ceil(time.process_time()) + READ_CPU_S) if reads else hard
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _limit(wall_s: float) -> None:
    """Memory, CPU time and descriptors of a child; private memory, as torch maps far more than it uses."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    born_kb = next(
        int(line.split()[1])
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmData")
    )
    limits = {
        resource.RLIMIT_DATA: (born_kb << 10) + READ_BYTES,
        resource.RLIMIT_CPU: max(1, math.ceil(wall_s)),
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 1 << 20,
        resource.RLIMIT_NOFILE: 64,
    }
    for name, value in limits.items():
        hard = resource.getrlimit(name)[1]
        lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (lower, lower))


if __name__ == "__main__":
    main()
