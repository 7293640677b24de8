"""The printer of LLVM IR: programs in, text out. It knows neither the host nor how NumPy calls code.

`module` collects the text. `graph`, `schedule` and `march` print the three kinds of program, with `elementary` for
sines, exponentials and the like. `batch_loop` prints any of them as one function, and a loop over the rows of a batch
around it. `printer` has the interface of all printers.
"""
