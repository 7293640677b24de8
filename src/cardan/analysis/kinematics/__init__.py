"""Positions: inverse kinematics, branches and dead points of linkages, manipulability, workspace."""
