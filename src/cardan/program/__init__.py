"""Programs: what is computed, as data. They know no mechanics and no machine.

- `program`: a `Program` has named arrays in and out (`Port`), a key, and a function that records what lies between;
  `record` runs it, checks the result against the ports, and returns one of the following three.
- `graph`: a `Graph` is a straight line of numbered values, read from a CasADi function.
- `schedule`: a `Schedule` calls small graphs for every node of a large model. `elimination` plans the rounds that solve
  a sparse symmetric system of small blocks, by dense `fronts` where it fills up; `fusion` joins rounds into one pass.
- `stages`: `Stages` are graphs in order, some of them repeated for columns of a matrix.
- `march`: a `March` repeats a step, made of graphs and schedules, until every system is done.

`cardan.machines` turns a program into machine code. Derivatives of programs are programs too: functions from a program
to a program, and this room is their place.
"""
