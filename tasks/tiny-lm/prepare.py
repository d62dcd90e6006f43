"""Makes the text of `tiny-lm` from what Python ships with: the language reference that `help()` reads.

Its licence (PSF-2.0, with the documentation's examples under 0BSD) allows that, and every Python from 3.11 on has it.
Paragraphs that stand there twice are taken once, so that nothing that is scored was trained on.
"""

import random
from pathlib import Path
from pydoc_data.topics import topics

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
_BLOCK, _MOST_BLOCKS = 2_000, 90
"""Characters of a block, and blocks: as many as two ranks on CPUs read twice within seconds."""
_SHORTEST = 40


def prepare(out: Path, source: Path | None, seed: str) -> None:  # noqa: ARG001  nothing is fetched
    """`train.txt` and `validation/text.txt` for scripts, `text.txt` for the scorer, all of them ASCII.

    Args:
        out: its `visible` and `hidden` are written to. source: not needed. seed: decides which block goes where.
    """
    seen, blocks = set[str](), [""]
    for name in sorted(topics):
        for paragraph in topics[name].split("\n\n"):
            text = "".join(character if character in CHARACTERS else "?" for character in paragraph).strip("\n")
            if len(text) < _SHORTEST or text in seen:
                continue
            seen.add(text)
            blocks[-1] += text + "\n\n"
            if len(blocks[-1]) >= _BLOCK:
                blocks.append("")
    random.Random(seed).shuffle(blocks)
    blocks = blocks[:_MOST_BLOCKS]
    tenth = len(blocks) // 10
    validation = out / "visible" / "validation"
    validation.mkdir(parents=True, exist_ok=True)
    (out / "hidden").mkdir(exist_ok=True)
    for path, part in (
        (out / "hidden" / "text.txt", blocks[:tenth]),
        (validation / "text.txt", blocks[tenth : 2 * tenth]),
        (out / "visible" / "train.txt", blocks[2 * tenth :]),
    ):
        path.write_text("".join(part), encoding="ascii")
