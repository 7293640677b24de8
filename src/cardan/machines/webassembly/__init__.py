"""WebAssembly for browsers: the LLVM IR of the kernels on one lane, compiled in process, as one small module.

`code` compiles a program; `arithmetic` is what WebAssembly lacks, as IR; `binary` makes a module that can be loaded of
the object file that LLVM writes. No linker is needed.
"""
