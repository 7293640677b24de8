"""Results of simulations: `simulate`, and folders for the trajectory, its plots, drawings and pages."""
