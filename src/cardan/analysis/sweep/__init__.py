"""Sweeps: many linkages of one family taken through the positions of their crank, and the best of them improved."""
