"""A state folder has a name of its own on the engine, so that nobody takes a stranger's containers for a dead one's."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grader.run.engine.ownership import state_name


def test_a_folder_keeps_its_name(tmp_path: Path) -> None:
    assert state_name(tmp_path) == state_name(tmp_path)


def test_a_folder_that_is_not_there_yet_gets_its_name(tmp_path: Path) -> None:
    assert state_name(tmp_path / "new" / "state") == state_name(tmp_path / "new" / "state")


def test_another_volume_at_the_same_path_is_another_site(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    before = state_name(folder)
    shutil.rmtree(folder)
    folder.mkdir()
    assert state_name(folder) != before


def test_a_copy_is_another_site(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    before = state_name(folder)
    shutil.copytree(folder, tmp_path / "copy")
    assert state_name(tmp_path / "copy") != before


def test_several_who_begin_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(state_name, [tmp_path] * 64))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
