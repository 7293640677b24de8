"""Every formulation finds the same equilibria, with the same stability and reactions."""
