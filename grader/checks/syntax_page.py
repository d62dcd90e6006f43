"""The page of `SYNTAX`, which is no rule: it is told where a file does not parse, so that no rule can look."""

from __future__ import annotations

PAGE = """\
Python cannot read the script.

## What it finds
A file that Python cannot read: a bracket or a quote that is never closed, a line that is indented too far or too
little, a word that is missing. Or one that takes more time or memory to read than a script may: hundreds of kilobytes
of generated code, or of data written into the text. Or one that Python reads and that takes too long to be checked,
because very many functions and values lead to each other; the finding says so, and nothing else is held against it.

## Why it matters
Python reads a file whole before it runs the first line. Nothing of this one can run, on no rank, so nothing else is
judged. Handing it in is refused and costs no attempt.

## Example
```text
for epoch in range(EPOCHS)
    train_one_epoch(model, loader)
```

## Use instead
```python
for epoch in range(EPOCHS):
    train_one_epoch(model, loader)
```

## How it is seen
In the source: Python's own parser and compiler refuse the file, and say where they stopped. The mistake is often a line
above that place, at the bracket or quote that is still open there. `python -m py_compile train.py` says the same on
your machine where it is the version of Python that the finding names: what a newer one takes may be an error to an
older one. Reading has limits of time and memory, too; a script of 300 lines takes a hundredth of them.
"""
