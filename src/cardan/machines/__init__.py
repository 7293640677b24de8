"""Machines: programs become machine code, and machine code becomes functions of arrays. They know no mechanics.

    program  ->  llvm (LLVM IR)  ->  host (machine code)  ->  ufunc (NumPy's call)

- `printer` is the interface of all printers.
- `llvm` prints programs as LLVM IR; `javascript` prints graphs as ES modules, which the user takes to a browser.
- `host` compiles and loads IR for this processor; `cache` keeps what it compiled in a folder that `private` guards;
  `build` takes a program along this way.
- `ufunc` calls it: a `Kernel` is a batched function of NumPy arrays. `compile_program` makes one.

A second machine, such as a GPU that runs the same IR on one lane, belongs beside `host`, and its way of being called
beside `ufunc`.
"""
