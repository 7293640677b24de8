"""Linear models about a state, their modes and frequency responses."""
