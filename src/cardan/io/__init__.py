"""Model files: each format has one reader, which turns a file into a `Mechanism`."""
