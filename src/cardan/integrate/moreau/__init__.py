"""Time stepping with impacts and friction: the integrator `moreau`."""
