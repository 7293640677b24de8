"""Other programs on the card, each in processes of its own that do not import Cardan."""
