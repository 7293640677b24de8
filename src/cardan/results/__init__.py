"""What a simulation gave: a trajectory with names and units, what follows from it, and its files."""
