"""A notebook that is handed in is the scripts in its cells; what cannot be told is said with what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.errors import UsageError
from grader.model.notebook_lines import told_place
from grader.notebooks.handed_in import MAX_NOTEBOOK_BYTES, scripts_in
from tests.notebooks.notebook_files import notebook

PICTURE = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo" * 1_000_000}, "metadata": {}}


def texts(content: bytes) -> dict[str, str]:
    return {file.path: file.text for file in scripts_in(content, "lab.ipynb")}


def refusal(content: bytes) -> str:
    with pytest.raises(UsageError) as caught:
        scripts_in(content, "lab.ipynb")
    return str(caught.value)


def test_the_cells_that_write_files_are_the_submission() -> None:
    content = notebook(
        ("markdown", "# My lab"),
        "%%writefile train.py\nimport model\nprint(1)",
        "import torch",
        "%%file 'lib/model.py'\nx = '%s'",
        "%%writefile -a ./train.py\nprint(2)\n",
        "%%writefile data.csv\n1,2",
    )
    assert texts(content) == {
        "train.py": "# %% cell 2 of lab.ipynb\nimport model\nprint(1)\n# %% cell 5 of lab.ipynb\nprint(2)\n",
        "lib/model.py": "# %% cell 4 of lab.ipynb\nx = '%s'\n",
    }


def test_marked_cells_are_the_submission_and_what_only_ipython_knows_is_a_comment() -> None:
    cell = """
# grader: train.py
%matplotlib inline
!pip install torch \\
    torchvision
if True:
    %time run()
text = '''
%s and !s
'''
left = (7
  %text)
files = !ls
torch.nn?
done = 1 != 2"""
    assert texts(notebook(cell, "print('tried')", "# grader: train.py\nlast = 1"))["train.py"] == (
        """# %% cell 1 of lab.ipynb

# %matplotlib inline
# !pip install torch \\
    # torchvision
if True:
    pass  # %time run()
text = '''
%s and !s
'''
left = (7
  %text)
# files = !ls
# torch.nn?
done = 1 != 2
# %% cell 3 of lab.ipynb
last = 1
"""
    )


def test_every_line_is_told_by_its_cell(tmp_path: Path) -> None:
    content = notebook(
        ("markdown", "text"), "\n\n%%writefile train.py\na = 1\nb = 2", "%%writefile -a train.py\nc = 3"
    )
    (tmp_path / "lab.ipynb").write_bytes(content)
    submission = read_submission(tmp_path / "lab.ipynb")
    lines = submission.lines("train.py")
    told = {
        line: told_place(submission, "train.py", lines.index(line) + 1)
        for line in ("a = 1", "b = 2", "c = 3")
    }
    assert told == {"a = 1": "cell 2, line 4", "b = 2": "cell 2, line 5", "c = 3": "cell 3, line 2"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "Save your notebook first"),
        (b'{"cells": [', "not JSON (line 1, column 12"),
        (b"[" * 100_000, "no notebook"),
        (b'{"a": ' + b"9" * 5000 + b"}", "no notebook"),
        (b"\xff\xfe\x00", "no notebook"),
        (b"{}", "Hand in the file that Jupyter saves"),
        (json.dumps({"nbformat": 3, "worksheets": []}).encode(), "of format 3"),
        (json.dumps({"nbformat": 4, "cells": {}}).encode(), "no list"),
        (json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}).encode(), "Cell 1 of"),
        (json.dumps({"nbformat": 4, "cells": [7]}).encode(), "Cell 1 of"),
        (notebook("import torch"), "`%%writefile train.py`"),
        (
            notebook("%%writefile train.py\nx", "%%writefile train.py\ny"),
            "Cells 1 and 2 of lab.ipynb each write",
        ),
        (notebook("%%writefile -a train.py\nx"), "no cell before it"),
        (notebook("%%writefile train.py\nx", "# grader: train.py\ny"), "cells 1, 2 belong to train.py"),
        (notebook("%%writefile ../train.py\nx"), "'../train.py'"),
        (notebook("%%writefile /content/train.py\nx"), "beside the notebook"),
        (notebook("%%writefile $name\nx"), "without variables"),
        (notebook("# grader: notes.txt\nx"), "'notes.txt'"),
        (notebook("%%writefile train.py\nx = '\ud800'"), "half a character"),
        (b" " * (MAX_NOTEBOOK_BYTES + 1), "Clear its outputs"),
    ],
    ids=range(20),
)
def test_what_cannot_be_told_is_refused_with_what_to_do(content: bytes, words: str) -> None:
    assert words in refusal(content)


def test_pictures_in_outputs_are_left_behind() -> None:
    content = notebook("%%writefile train.py\nx = 1", outputs=[PICTURE])
    assert len(content) > 10 << 20
    assert texts(content) == {"train.py": "# %% cell 1 of lab.ipynb\nx = 1\n"}


def test_a_folder_is_its_notebook_where_it_has_no_train_py(tmp_path: Path) -> None:
    (tmp_path / "lab.ipynb").write_bytes(notebook("%%writefile train.py\nimport helper"))
    (tmp_path / "helper.py").write_text("x = 1\n")
    assert [file.path for file in read_submission(tmp_path).files] == ["helper.py", "train.py"]
    (tmp_path / "other.ipynb").write_bytes(b"{}")
    with pytest.raises(UsageError, match="2 notebooks"):
        read_submission(tmp_path)
    (tmp_path / "train.py").write_text("y = 1\n")
    assert read_submission(tmp_path).text("train.py") == "y = 1\n", (
        "the script itself, not where it was tried"
    )


def test_what_a_notebook_and_a_file_both_are_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lab.ipynb").write_bytes(notebook("%%writefile train.py\nx", "%%writefile helper.py\ny"))
    (tmp_path / "helper.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match=r"helper\.py\. Delete one"):
        read_submission(tmp_path)


def test_one_script_of_any_name_is_the_one_to_start_and_several_need_it(tmp_path: Path) -> None:
    path = tmp_path / "lab.ipynb"
    path.write_bytes(notebook("%%writefile ddp.py\nx = 1"))
    assert [file.path for file in read_submission(path).files] == ["train.py"]
    path.write_bytes(notebook("%%writefile ddp.py\nx = 1", "%%writefile net.py\ny = 1"))
    with pytest.raises(UsageError, match=r"writes ddp\.py, net\.py, and not train\.py"):
        read_submission(path)
