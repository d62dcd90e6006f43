"""Names: those that were given up stay away, no two public classes share one, and few modules stand loose."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "grader"
GIVEN_UP = tomllib.loads((Path(__file__).parent / "given_up.toml").read_text(encoding="utf-8"))
MAX_LOOSE_MODULES = 8
MAX_WORDS = 40


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name without `grader.`."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def public_classes() -> dict[str, list[tuple[str, ast.ClassDef]]]:
    found: dict[str, list[tuple[str, ast.ClassDef]]] = defaultdict(list)
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append((module, node))
    return found


def test_modules_that_were_given_up_stay_away() -> None:
    assert sorted(set(GIVEN_UP["modules"]) & set(trees())) == []


def test_what_a_given_up_module_became_is_there() -> None:
    gone = {new for new in GIVEN_UP["modules"].values() if new not in trees()}
    assert gone == set(), "renamed once more: say so in given_up.toml"


def test_classes_and_functions_that_were_given_up_stay_away() -> None:
    names = {*GIVEN_UP["classes"], *GIVEN_UP["functions"]}
    found = sorted(
        f"{module}: {node.name}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name in names
    )
    assert found == []


def test_no_two_public_classes_share_a_name() -> None:
    twins = {
        name: [module for module, _ in places]
        for name, places in public_classes().items()
        # One that replaces the other says so by deriving from it.
        if len(places) > 1
        and not any(
            name in re.findall(r"\w+", ast.unparse(base)) for _, node in places for base in node.bases
        )
    }
    assert twins == {}


def test_few_modules_stand_loose() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MAX_LOOSE_MODULES


def test_the_glossary_is_short() -> None:
    words = (PACKAGE.parent / "docs" / "words.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| \*\*", words, flags=re.MULTILINE)) <= MAX_WORDS
