"""Motion in time: integrators, events, and the run that drives them."""
