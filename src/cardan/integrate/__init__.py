"""Putting a mechanism together, and (to come) moving it in time."""
