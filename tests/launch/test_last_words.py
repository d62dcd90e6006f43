"""What a standard error text says about how a rank ended, whoever wrote it."""

from __future__ import annotations

import pytest

from grader.launch.endings.failure import last_words
from grader.launch.endings.stacks import frames_of

PREFIXED = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/run/train.py", line 9, in <module>
[rank1]:     main()
[rank1]:     ^^^^^^
[rank1]:   File "/run/train.py", line 5, in main
[rank1]:     dist.barrier()
[rank1]: torch.distributed.DistBackendError: first line
[rank1]: second line
[rank1]: Exception raised from checkForError at Reducer.cpp:1 (most recent call first):
[rank1]: frame #0: c10::Error
"""
TERMINATED = """\
terminate called after throwing an instance of 'gloo::EnforceNotMet'
  what():  [enforce fail at pair.cc:464] 12 vs 4. Received data size doesn't match expected size.
"""


def test_torchs_rank_prefix_and_c_stack_are_left_out() -> None:
    words = last_words(PREFIXED)
    assert words is not None
    assert (words.type, words.message) == ("DistBackendError", "first line\nsecond line")
    assert [(frame.line, frame.function) for frame in words.frames] == [(5, "main"), (9, "<module>")]


def test_an_exception_that_only_c_could_tell_is_found() -> None:
    words = last_words(TERMINATED)
    assert words is not None
    assert words.type == "gloo::EnforceNotMet"
    assert "12 vs 4" in words.message
    assert words.frames == ()


def test_of_chained_exceptions_the_last_one_counts() -> None:
    words = last_words(
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\n'
        "ValueError: first\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "a.py", line 2, in <module>\n'
        "KeyError: 'second'\n"
    )
    assert words is not None
    assert (words.type, words.message, [f.line for f in words.frames]) == ("KeyError", "'second'", [2])


def test_a_syntax_error_has_a_line_and_no_function() -> None:
    words = last_words(
        "  File \"/run/train.py\", line 2\n    for x in y\n    ^^^^\nSyntaxError: expected ':'\n"
    )
    assert words is not None
    assert (words.type, words.frames[0].line, words.frames[0].function) == ("SyntaxError", 2, "")


@pytest.mark.parametrize(
    "message", ["CUDA out of memory. Tried", "[enforce] DefaultCPUAllocator: can't allocate memory: you"]
)
def test_failed_allocations_are_recognised(message: str) -> None:
    words = last_words(
        f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nRuntimeError: {message}\n'
    )
    assert words is not None
    assert words.out_of_memory


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just words\n",
        "Traceback (most recent call last):\n",
        "Traceback (most recent call last):\n  File",
    ],
)
def test_other_texts_say_nothing(text: str) -> None:
    assert last_words(text) is None


def test_a_line_number_of_thousands_of_digits_is_none() -> None:
    text = f'Traceback (most recent call last):\n  File "train.py", line {"9" * 5000}, in f\nValueError: no\n'
    words = last_words(text)
    assert words is not None
    assert (words.type, words.frames) == ("ValueError", ())
    assert frames_of(f'Stack (most recent call first):\n  File "x.py", line {"9" * 5000} in f\n') == ()
