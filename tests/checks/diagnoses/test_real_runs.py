"""Scripts that really crash, stand still or run out of time and memory on two ranks, each told by its own explanation.

The folder of a script is the explanation that it must get. Its first line names the ranks to blame, `# <- here` the
line to point at first.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.checks.diagnosis import diagnose
from tests.checks.diagnoses.conftest import RunScript

FIXTURES = Path(__file__).parent / "fixtures"
SCRIPTS = sorted(FIXTURES.glob("*/*.py"))
_MIB = 1 << 20
# Limits that the ending needs; silence is no ending where a time limit is to be seen.
LIMITS: dict[str, dict[str, float]] = {
    "time_limit": {"wall_s": 3.0, "silence_s": 60.0},
    "rank_works_alone": {"wall_s": 3.0, "silence_s": 60.0},
    "out_of_memory": {"memory_bytes": 1500 * _MIB},
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=[f"{p.parent.name}-{p.stem}" for p in SCRIPTS])
def test_a_real_run_gets_its_own_explanation(script: Path, run_script: RunScript) -> None:
    text = script.read_text()
    name = script.parent.name
    found, broken = diagnose(run_script(text, **LIMITS.get(name, {})))
    assert broken == ()
    assert found is not None
    assert found.id == name, found
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "# <- here" in line]
    assert [(p.path, p.line) for p in found.where][: len(lines)] == [("train.py", n) for n in lines], found
    # "or": the first to fail may end the run before the others come to it.
    wanted = [[int(n) for n in re.findall(r"\d+", part)] for part in text.splitlines()[0].split(" or ")]
    assert list(found.ranks) in wanted, found
    for number in lines:
        assert f"`train.py:{number}`" in found.explanation, found
    # Two sentences, whatever the script's own words between quotation marks hold.
    own = re.sub(r"“[^”]*”", "", found.explanation)
    assert len(re.findall(r"[\w`)]\.(?= |$)", own)) == 2, found.explanation
    assert found.hint
    assert found.title
