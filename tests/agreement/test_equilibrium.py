"""Every formulation finds the same equilibria, with the same stability and reactions."""

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import four_bar

from ..formulations import FORMULATIONS
