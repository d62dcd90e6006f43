"""A wheel is whole: the built-in course, its skeletons, the images' recipes and the pages go along as `grader/builtin`.

An editable installation has them beside the package, where they are written. Everything else stands in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWhole(build_py):
    """Lays the folders of the repository beside the modules."""

    def run(self) -> None:
        """Copy modules as ever, then the folders, into a place where nothing is left of an earlier build."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            for name in ("tasks", "skeletons", "containers", "docs"):
                target = Path(self.build_lib, "grader", "builtin", name)
                shutil.copytree(name, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))


setup(cmdclass={"build_py": BuildWhole})
