"""A task's own data: made once by its script, offline, from files whose digests are known; mistakes name their line."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from grader.catalog.data.datasets import find_dataset
from grader.catalog.data.own_datasets import prepare, prepared
from grader.catalog.tasks.task_folders import load_task
from grader.errors import TaskError, UsageError
from grader.model.dataset import PreparedDataset
from tests.own_task import corpus, write_course


@pytest.fixture
def folder(home: Path) -> Path:
    """The task of text, in a home of its own."""
    return write_course(home)


def words(path: Path) -> np.ndarray:
    return np.fromfile(path, dtype=np.uint16)


def make(folder: Path) -> PreparedDataset:
    return prepare(load_task(folder.name))


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_both_sides_are_what_the_script_wrote_and_apart(folder: Path) -> None:
    found = find_dataset(load_task("tiny-text"))
    assert len(words(found.visible_dir / "train.bin")) == 4000
    assert len(words(found.visible_dir / "validation" / "tokens.bin")) == 500
    assert len(words(found.hidden_dir / "hidden" / "tokens.bin")) == 500
    assert found.visible_dir not in found.hidden_dir.parents
    assert not list(found.visible_dir.rglob("*hidden*"))


def test_it_is_made_once_and_again_when_what_it_was_made_from_changes(folder: Path) -> None:
    first = make(folder)
    written = first.visible_dir.stat().st_mtime_ns
    (folder / "statement.md").write_text("# Another statement\n")
    assert make(folder) == first
    assert first.visible_dir.stat().st_mtime_ns == written
    replaced(folder / "tokenizer.json", '"a", "ship"', '"ship", "a"')
    assert prepared(load_task("tiny-text")) is None
    second = make(folder)
    assert second.version != first.version
    # The first version of the task still finds its own.
    replaced(folder / "tokenizer.json", '"ship", "a"', '"a", "ship"')
    assert prepared(load_task("tiny-text")) == first


def test_a_source_with_another_digest_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "corpus.txt").unlink()
    with pytest.raises(
        UsageError, match=r"corpus\.txt, which is not here: grader data prepare tiny-text --from PATH"
    ):
        make(folder)
    other = tmp_path / "given.txt"
    other.write_text("a ship")
    task = load_task("tiny-text")
    with pytest.raises(UsageError, match=r'its SHA-256 is .* and data\.files\."corpus\.txt" says'):
        prepare(task, other)
    other.write_text(corpus())
    assert len(words(prepare(task, other).visible_dir / "train.bin")) == 4000
    (folder / "corpus.txt").write_text("changed")
    with pytest.raises(TaskError, match="SHA-256"):
        prepare(task, None if prepared(task) is None else folder)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("    return 1 / 0", r"prepare.py:16: ZeroDivisionError"),
        ("    raise SystemExit(0)", r"prepare.py:16: SystemExit"),
        ("    __import__('os')._exit(3)", r"ended with exit code 3"),
        (
            "    __import__('urllib.request').request.urlopen('http://localhost')",
            r"prepare.py:16: .*there is no network here; name the file in \[data.files",
        ),
        ("    (out / 'visible' / '.secret').touch()", r"'visible/.secret'"),
        ("    (out / 'visible' / 'link').symlink_to('/etc/passwd')", "visible/link, which is neither"),
        ("    (out / 'hidden' / 'tokens.bin').unlink()", "left no file in hidden/"),
    ],
)
def test_what_is_wrong_with_the_script_is_told_with_its_line(folder: Path, line: str, told: str) -> None:
    with (folder / "prepare.py").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(TaskError, match=told):
        make(folder)
    assert prepared(load_task("tiny-text")) is None
    state = folder.parents[1] / "state"
    assert not list((state / "data" / "visible").rglob("*"))


def test_a_loopback_of_its_own_is_all_there_is_of_a_network(folder: Path) -> None:
    with (folder / "prepare.py").open("a") as file:
        file.write(
            "    import socket\n    (out / 'visible' / 'net.txt').write_text(str(socket.if_nameindex()))\n"
        )
    found = (make(folder).visible_dir / "net.txt").read_text()
    if os.getuid() == 0:
        assert [name for _, name in eval(found)] == ["lo"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('prepare = "prepare.py"', 'prepare = "make.py"', "make.py: is missing"),
        ('prepare = "prepare.py"', 'prepare = "txt"', "data.prepare: 'txt' is not spelled"),
        ('prepare = "prepare.py"', 'prepare = "prepare.py"\ndatasets = ["digits"]', "remove one of the two"),
        ('prepare = "prepare.py"', 'prepare = "prepare.py"\nname = "digits"', "write another name"),
        ('prepare = "prepare.py"', 'prepare = "prepare.py"\npermute_labels = false', "data.permute_labels"),
        ('prepare = "prepare.py"\n', "", "data.datasets: is missing"),
        ("at_most = 5.0", "at_most = { digits = 5.0 }", "says nothing about tiny-text"),
    ],
)
def test_what_is_wrong_with_the_table_is_told(folder: Path, old: str, new: str, told: str) -> None:
    replaced(folder / "task.toml", old, new)
    with pytest.raises(TaskError) as caught:
        load_task("tiny-text")
    assert told in str(caught.value)


def kind(folder: Path, name: str) -> None:
    text = (folder / "task.toml").read_text()
    files = text[text.index("[data.files") : text.index("[profiles.cpu]")]
    (folder / "task.toml").write_text(text.replace(files, "").replace('"prepare.py"', f'"{name}"'))


def test_a_text_is_cut_at_the_ends_of_lines(folder: Path, tmp_path: Path) -> None:
    kind(folder, "text")
    source = tmp_path / "book.txt"
    source.write_text("".join(f"{n} bottles\n" for n in range(1000)))
    task = load_task("tiny-text")
    with pytest.raises(UsageError, match="grader data prepare tiny-text --from PATH"):
        prepare(task)
    found = prepare(task, source)
    parts = [found.visible_dir / "train", found.visible_dir / "validation", found.hidden_dir / "hidden"]
    texts = [(part / "text.txt").read_text() for part in parts]
    assert "".join(texts) == source.read_text()
    assert all(text.endswith("\n") for text in texts)
    assert [round(len(text) / len(source.read_text()), 2) for text in texts] == [0.8, 0.1, 0.1]


def test_a_table_keeps_its_header_and_equal_rows_on_one_side(folder: Path, tmp_path: Path) -> None:
    kind(folder, "table")
    source = tmp_path / "houses.csv"
    rows = [f"{n % 300},{(n % 300) * 2.5}" for n in range(900)]
    source.write_text("rooms,price\n" + "\n".join(rows) + "\n")
    found = prepare(load_task("tiny-text"), source)
    parts = [found.visible_dir / "train", found.visible_dir / "validation", found.hidden_dir / "hidden"]
    tables = [(part / "table.csv").read_text().splitlines() for part in parts]
    assert {table[0] for table in tables} == {"rooms,price"}
    assert sorted(row for table in tables for row in table[1:]) == sorted(rows)
    sets = [set(table[1:]) for table in tables]
    assert not sets[0] & sets[1]
    assert not (sets[0] | sets[1]) & sets[2]
    assert (found.num_train, found.num_validation, found.num_hidden) == tuple(len(t) - 1 for t in tables)


def batches(folder: Path, **changes: object) -> Path:
    """A few made-up images in the layout of CIFAR-10's Python batches."""
    folder.mkdir(parents=True)
    for number, name in enumerate(("data_batch_1", "data_batch_2", "test_batch")):
        pixels = np.random.default_rng(number).integers(0, 256, (60, 3072)).astype(np.uint8)
        batch = {
            b"data": pixels,
            b"labels": [int(row[0]) % 10 for row in pixels],
            b"batch_label": name.encode(),
        }
        (folder / name).write_bytes(
            pickle.dumps(batch | {key.encode(): value for key, value in changes.items()})
        )
    return folder


def test_cifar10_is_read_from_its_batches(folder: Path, tmp_path: Path) -> None:
    kind(folder, "cifar10")
    batches(tmp_path / "site" / "cifar-10-batches-py")
    found = prepare(load_task("tiny-text"), tmp_path / "site")
    parts = [found.visible_dir / "train", found.visible_dir / "validation", found.hidden_dir / "hidden"]
    images = [np.load(part / "images.npy") for part in parts]
    labels = [np.load(part / "labels.npy") for part in parts]
    assert {(one.dtype.name, *one.shape[1:]) for one in images} == {("uint8", 32, 32, 3)}
    assert sum(map(len, images)) == 180 == found.num_train + found.num_validation + found.num_hidden
    # The first pixel of each, in red, says its label.
    assert all((one[:, 0, 0, 0] % 10 == told).all() for one, told in zip(images, labels, strict=True))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"labels": [11] * 60}, "labels from 11 to 11"),
        ({"data": np.zeros((60, 5), np.uint8)}, r"pixels \(60, 5\)"),
        ({"more": Path}, "it holds a pathlib"),
    ],
)
def test_what_is_no_batch_of_cifar10_is_refused(
    folder: Path, tmp_path: Path, changes: dict[str, object], told: str
) -> None:
    kind(folder, "cifar10")
    with pytest.raises(UsageError, match=told):
        prepare(load_task("tiny-text"), batches(tmp_path / "site", **changes))


def test_arrays_stay_arrays_row_by_row(folder: Path, tmp_path: Path) -> None:
    kind(folder, "arrays")
    x = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    np.savez(tmp_path / "given.npz", x=x, y=x.sum(1))
    found = prepare(load_task("tiny-text"), tmp_path / "given.npz")
    for part in (found.visible_dir / "train", found.visible_dir / "validation", found.hidden_dir / "hidden"):
        rows = np.load(part / "x.npy", mmap_mode="r")
        assert len(rows)
        assert np.array_equal(rows.sum(1), np.load(part / "y.npy"))
    np.savez(tmp_path / "given.npz", x=x, y=x[:5])
    with pytest.raises(UsageError, match="differ in length"):
        prepare(load_task("tiny-text"), tmp_path / "given.npz")


@pytest.mark.parametrize("given", ["folders", "npz", "csv"])
def test_images_of_any_size_lie_as_fashion_mnist_does(folder: Path, tmp_path: Path, given: str) -> None:
    from PIL import Image
    from torchvision.datasets import FashionMNIST

    kind(folder, "images")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (150, 12, 12), dtype=np.uint8)
    labels = np.arange(150) % 15
    source = tmp_path / ("pictures" if given == "folders" else f"given.{given}")
    if given == "folders":
        for n, (image, label) in enumerate(zip(images, labels, strict=True)):
            (source / f"class-{label:02}").mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(source / f"class-{label:02}" / f"{n}.png")
    elif given == "npz":
        np.savez(source, images=images, labels=labels)
    else:
        table = np.concatenate([labels[:, None], images.reshape(150, -1)], 1)
        np.savetxt(source, table, fmt="%d", delimiter=",", header="label", comments="")
    found = prepare(load_task("tiny-text"), source)
    train = FashionMNIST(str(found.visible_dir), train=True)
    assert train.data.shape == (found.num_train, 12, 12)
    assert set(train.targets.tolist()) == set(range(15))
    assert found.num_train + found.num_validation + found.num_hidden == 150
    assert (found.hidden_dir / "FashionMNIST" / "raw" / "t10k-images-idx3-ubyte").is_file()


def test_pictures_of_two_sizes_are_refused(folder: Path, tmp_path: Path) -> None:
    from PIL import Image

    kind(folder, "images")
    for n, size in enumerate((12, 13)):
        (tmp_path / "pictures" / str(n)).mkdir(parents=True)
        Image.new("L", (size, size)).save(tmp_path / "pictures" / str(n) / "a.png")
    with pytest.raises(UsageError, match="all images of a set have one size"):
        prepare(load_task("tiny-text"), tmp_path / "pictures")


def test_the_manifest_says_what_it_was_made_from(folder: Path, home: Path) -> None:
    make(folder)
    (path,) = (home / "state" / "data" / "own" / "tiny-text").glob("*.json")
    said = json.loads(path.read_text())
    assert set(said["inputs"]) == {"prepare.py", "tokens.py", "tokenizer.json"}
    assert said["source"] == "tiny-text/prepare.py"


def test_a_choice_among_everybodys_sets_does_not_touch_it(folder: Path) -> None:
    task = load_task("tiny-text")
    assert find_dataset(task, "digits").name == "tiny-text"
    with pytest.raises(UsageError, match="is not judged on 'letters'"):
        find_dataset(task, "letters")
