"""The commands of the command line, one file each; `cardan.cli` puts them together.

Heavy parts are imported inside the functions, so that `cardan --help` answers at once.
"""
