"""Rows with laws in the explicit integrators: modes, and what changes them."""
