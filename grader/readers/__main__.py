"""A reader of its own; see `serving.main`."""

import sys

from grader.readers.serving import main

main(sys.argv[1:])
