"""When this process began to load Cardan. Source that was written later is not what the process runs."""

from __future__ import annotations

import time

LOADED = time.time()
"""Seconds since the epoch."""
