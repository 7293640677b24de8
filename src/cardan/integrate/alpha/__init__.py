"""The generalised-alpha method, compiled for batches."""
