"""The formulation `points`: planar mechanisms as particles."""
