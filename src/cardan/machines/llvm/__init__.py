"""The printer of LLVM IR: one vector of lanes per value of a program."""
