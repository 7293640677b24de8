"""Attributes that are computed on first use.

`functools.cached_property` of Python 3.11 holds a lock, one for all instances of a class, while an attribute is
computed. A process that forks meanwhile leaves the lock held in the child, where nobody releases it. Later versions of
Python have no lock, as here: two threads may compute an attribute at the same time, and one result is kept.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    import functools

    class cached_property(functools.cached_property):
        """An attribute that is computed on first use, without a lock."""

        def __get__(self, instance, owner=None):
            """The value, which from now on lies in the instance itself."""
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values.setdefault(self.attrname, self.func(instance))
            return values[self.attrname]


__all__ = ["cached_property"]
