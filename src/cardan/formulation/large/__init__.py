"""Large mechanisms with loops: pieces, connections between them, and programs that loop over both by class."""
