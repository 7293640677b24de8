"""Synthesis: dimensions of linkages for paths, functions and motions; balancing; sensitivities over parameters."""
