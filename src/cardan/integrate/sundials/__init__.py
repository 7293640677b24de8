"""Multistep integrators, by SUNDIALS: IDA on differential-algebraic equations, CVODE on trees."""
