"""A second machine: programs on an NVIDIA GPU, from the same IR on one lane.

    program  ->  entry (LLVM IR)  ->  ptx (PTX)  ->  driver (machine code of the card)  ->  kernel (the call)

- `entry` prints the kernel around a program's body: one thread takes one row of a batch.
- `ptx` lets LLVM make PTX of it. `driver` reaches the CUDA driver, which every NVIDIA installation has; no toolkit is
  needed (docs/decisions/0049).
- `arrays` reads arrays of torch, CuPy, JAX, Numba and Warp where they are, and answers in the same library.
- `kernel` calls a program on such arrays, or on NumPy arrays that it takes to the card and back.
"""
