"""Model files: reading them into a `Mechanism`, and writing models. One folder for each format."""
