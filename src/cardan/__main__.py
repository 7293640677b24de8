"""`python -m cardan` is the command line."""

from cardan.cli import main

main()
