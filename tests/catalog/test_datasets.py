"""Data sets: real images in FashionMNIST's layout, no image on two sides, safe to prepare again or twice at once."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from grader.catalog.data.datasets import find_dataset, prepare, prepared
from grader.catalog.data.image_sources import enlarge
from grader.catalog.tasks.task_folders import load_task
from grader.errors import InfraError, TaskError, UsageError
from grader.idx import images_bytes, labels_bytes, read_split
from grader.model.dataset import PreparedDataset

RAW = Path("FashionMNIST") / "raw"


def sides(dataset: PreparedDataset) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {
        "train": read_split(dataset.visible_dir / RAW, "train"),
        "validation": read_split(dataset.visible_dir / RAW, "t10k"),
        "hidden": read_split(dataset.hidden_dir / RAW, "t10k"),
    }


def hashes(images: np.ndarray) -> set[bytes]:
    return {hashlib.sha256(i.tobytes()).digest() for i in images}


def write_folder(folder: Path, train: np.ndarray, test: np.ndarray) -> Path:
    (folder / RAW).mkdir(parents=True)
    for split, images in (("train", train), ("t10k", test)):
        (folder / RAW / f"{split}-images-idx3-ubyte").write_bytes(images_bytes(images))
        (folder / RAW / f"{split}-labels-idx1-ubyte").write_bytes(labels_bytes(np.arange(len(images)) % 10))
    return folder


def noise(num: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (num, 28, 28), dtype=np.uint8)


def test_digits_are_split_without_overlap_and_with_all_classes(home: Path) -> None:
    dataset = prepare("digits")
    found = sides(dataset)
    sizes = {name: len(labels) for name, (_, labels) in found.items()}
    assert sizes == {
        "train": dataset.num_train,
        "validation": dataset.num_validation,
        "hidden": dataset.num_hidden,
    }
    assert sum(sizes.values()) == 1797
    everything = [hashes(images) for images, _ in found.values()]
    assert len(set.union(*everything)) == 1797
    for images, labels in found.values():
        assert images.max() == 255
        counts = np.bincount(labels, minlength=10)
        assert counts.min() >= 0.9 * len(labels) / 10
    # Odd, so that padding by a sampler shows with two ranks.
    assert all(size % 2 for size in sizes.values())


def test_digits_are_the_same_bytes_on_every_machine(home: Path) -> None:
    assert prepare("digits").version == "c978ab3c2c62"


def test_enlarged_digits_keep_their_brightness() -> None:
    flat = np.full((1, 8, 8), 16)
    assert (enlarge(flat) == 255).all()
    half = np.zeros((1, 8, 8), dtype=np.int64)
    half[:, :, 4:] = 16
    row = enlarge(half)[0, 14].astype(int)
    assert (np.diff(row) >= 0).all()
    assert row[0] == 0
    assert row[-1] == 255
    assert abs(row.mean() - 127.5) < 1


def test_torchvision_reads_it_without_a_network(home: Path) -> None:
    from torchvision.datasets import FashionMNIST

    dataset = prepare("digits")
    train = FashionMNIST(str(dataset.visible_dir), train=True, download=True)
    assert len(train) == dataset.num_train
    assert len(FashionMNIST(str(dataset.visible_dir), train=False)) == dataset.num_validation
    assert train[0][0].size == (28, 28)


def test_hidden_data_is_not_in_the_scripts_tree(home: Path) -> None:
    dataset = prepare("digits")
    hidden = hashes(sides(dataset)["hidden"][0])
    visible_root = dataset.visible_dir.parent.parent
    assert visible_root not in dataset.hidden_dir.parents
    for path in visible_root.rglob("*images*"):
        assert not hidden & hashes(read_split(path.parent, path.name.partition("-")[0])[0])


def test_preparing_again_changes_nothing_and_mends_damage(home: Path) -> None:
    first = prepare("digits")
    path = first.hidden_dir / RAW / "t10k-labels-idx1-ubyte"
    before, content = path.stat().st_mtime_ns, path.read_bytes()
    assert prepare("digits") == first
    assert path.stat().st_mtime_ns == before
    path.write_bytes(content[:-1] + b"\x09")
    assert prepare("digits") == first
    assert path.read_bytes() == content
    path.unlink()
    assert prepared("digits") is None
    assert prepare("digits") == first
    assert prepared("digits") == first


@pytest.mark.parametrize(
    ("whole", "damaged"), [('"num_train": 1', '"num_train": 0.1'), ('"schema": 1', '"schema": 2'), ("{", "")]
)
def test_a_damaged_manifest_is_none(home: Path, whole: str, damaged: str) -> None:
    first = prepare("digits")
    path = home / "state" / "data" / "digits.json"
    content = path.read_text()
    path.write_text(content.replace(whole, damaged, 1))
    assert path.read_text() != content
    assert prepared("digits") is None
    assert prepare("digits") == first
    assert path.read_text() == content


def test_leftovers_of_an_interrupted_run_are_swept(home: Path) -> None:
    leftover = home / "state" / "data" / ".making" / "digits" / "visible"
    leftover.mkdir(parents=True)
    (leftover / "half").write_bytes(b"x")
    assert prepared("digits") is None
    dataset = prepare("digits")
    assert not leftover.exists()
    assert [p.name for p in dataset.visible_dir.parent.iterdir()] == [dataset.version]


def test_two_processes_at_once(home: Path) -> None:
    code = "from grader.catalog.data.datasets import prepare; print(prepare('digits').version)"
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2]))
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    versions = {process.communicate(timeout=120)[0] for process in started}
    assert [p.returncode for p in started] == [0, 0]
    assert versions == {prepare("digits").version.encode() + b"\n"}


def test_a_local_folder_keeps_equal_images_on_one_side(home: Path, tmp_path: Path) -> None:
    train, test = noise(200, 1), noise(30, 2)
    train[7] = test[3]
    train[20] = train[21] = train[22]
    dataset = prepare("fashion-mnist-mini", write_folder(tmp_path / "given", train, test))
    found = sides(dataset)
    assert (dataset.num_hidden, dataset.num_train + dataset.num_validation) == (30, 199)
    assert dataset.num_validation == 37
    train_set, validation_set, hidden_set = (hashes(images) for images, _ in found.values())
    assert not train_set & validation_set
    assert not (train_set | validation_set) & hidden_set
    manifest = json.loads((home / "state" / "data" / "fashion-mnist-mini.json").read_text())
    assert manifest["num_dropped"] == 1


def test_a_new_source_becomes_the_version_in_use(home: Path, tmp_path: Path) -> None:
    first = prepare("fashion-mnist-mini", write_folder(tmp_path / "a", noise(100, 1), noise(20, 2)))
    second = prepare("fashion-mnist-mini", write_folder(tmp_path / "b", noise(100, 3), noise(20, 4)))
    assert first.version != second.version
    assert prepared("fashion-mnist-mini") == second
    assert first.visible_dir.is_dir()


@pytest.mark.parametrize("damage", ["cut", "magic", "labels", "empty"])
def test_damaged_sources_are_refused_and_leave_nothing(home: Path, tmp_path: Path, damage: str) -> None:
    folder = write_folder(tmp_path / "given", noise(50, 1), noise(10, 2))
    path = folder / RAW / "train-images-idx3-ubyte"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "magic":
        path.write_bytes(b"\0\0\x08\x01" + path.read_bytes()[4:])
    elif damage == "labels":
        (folder / RAW / "t10k-labels-idx1-ubyte").write_bytes(labels_bytes(np.full(10, 11)))
    else:
        path.write_bytes(b"")
    with pytest.raises(UsageError, match="cannot be used"):
        prepare("fashion-mnist-mini", folder)
    assert prepared("fashion-mnist-mini") is None
    assert not list((home / "state" / "data").glob("visible/**/*"))


def test_a_folder_of_something_else(home: Path, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    with pytest.raises(UsageError, match="holds no images with labels: neither FashionMNIST's files"):
        prepare("fashion-mnist-mini", tmp_path / "pictures")
    with pytest.raises(UsageError, match="--from FOLDER"):
        prepare("fashion-mnist-mini")
    with pytest.raises(UsageError, match="There are: digits"):
        prepare("cifar")


def test_finding_prepares_the_embedded_one_and_names_the_command_for_others(task_folder: Path) -> None:
    task = load_task("two-ranks")
    assert find_dataset(task).name == "digits"
    with pytest.raises(UsageError, match="not judged on 'fashion-mnist-mini'"):
        find_dataset(task, "fashion-mnist-mini")
    text = (task_folder / "task.toml").read_text()
    changed = text.replace('["digits"]', '["fashion-mnist-mini"]').replace(
        "{ digits =", "{ fashion-mnist-mini ="
    )
    (task_folder / "task.toml").write_text(changed)
    with pytest.raises(UsageError) as caught:
        find_dataset(load_task("two-ranks"))
    assert "not prepared on this machine" in str(caught.value)
    assert "grader data prepare fashion-mnist-mini --from FOLDER" in str(caught.value)


def test_a_profile_may_prefer_some_of_the_tasks_data_sets(task_folder: Path) -> None:
    path = task_folder / "task.toml"
    text = path.read_text().replace('["digits"]', '["digits", "fashion-mnist-mini"]')
    text = text.replace("digits = 0.9", "digits = 0.9, fashion-mnist-mini = 0.7")
    path.write_text(text.replace('"nccl"', '"nccl"\ndatasets = ["fashion-mnist-mini"]'))
    task = load_task("two-ranks")
    gpu = task.profile("gpu")
    assert gpu is not None
    assert find_dataset(task, None, task.profile("cpu")).name == "digits"
    assert find_dataset(task, "digits", gpu).name == "digits"
    with pytest.raises(UsageError, match="grader data prepare fashion-mnist-mini"):
        find_dataset(task, None, gpu)
    path.write_text(path.read_text().replace('datasets = ["fashion-mnist-mini"]', 'datasets = ["letters"]'))
    with pytest.raises(TaskError, match=r"profiles\.gpu\.datasets: 'letters' is not in data\.datasets"):
        load_task("two-ranks")


def test_a_failed_download_names_the_way_without_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with pytest.raises(InfraError, match="grader data prepare fashion-mnist --from FOLDER"):
        prepare("fashion-mnist")
    assert prepared("fashion-mnist") is None


def given_folders() -> list[Path | None]:
    """Folders of real images in FashionMNIST's layout: None stands for the embedded digits, which are always there."""
    named = os.environ.get("GRADER_TEST_DATA")
    beside = Path(__file__).parents[3] / "shared" / "data" / "fashion-mnist-mini"
    return [None, *(p for p in ([Path(named)] if named else []) + [beside] if p.is_dir())]


@pytest.mark.parametrize("given", given_folders(), ids=str)
def test_real_images_from_a_folder(home: Path, given: Path | None) -> None:
    dataset = prepare("fashion-mnist-mini", given or prepare("digits").visible_dir)
    found = sides(dataset)
    assert dataset.num_validation % 2
    assert not hashes(found["train"][0]) & hashes(found["validation"][0])
    assert 3.8 * dataset.num_validation <= dataset.num_train <= 4.5 * dataset.num_validation
