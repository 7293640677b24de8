"""The generalised-alpha method."""
