"""Studies: many runs of one model with other numbers, on one machine or many, that survive what happens to them."""
