"""The formulation `points`: mechanisms as particles, in the plane by a recursion, in space by `points.space`."""
