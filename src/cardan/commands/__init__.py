"""The commands of the command line, one file each; `cardan.cli` assembles them.

Expensive modules are imported inside the functions, so that `cardan --help` is fast.
"""
