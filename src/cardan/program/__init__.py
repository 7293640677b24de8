"""Programs: what is computed, as graphs, schedules over links and marches. They know no mechanics and no machine."""
