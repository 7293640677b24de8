"""Mutation testing: small changes that make the engine wrong, and whether the tests notice them.

A mutant is a change of one source file (`mutant.Mutant`), with the tests that must notice it. The lists are data, one
file for each room: `algebra`, `formulation`, `structure`, `integrate`, `machines`, `model`. A mutant that no test can
notice has its reason in the list.

    python -m tests.mutants                     # all, some hours of processor time
    python -m tests.mutants --room algebra
    python -m tests.mutants --file integrate/events.py --jobs 2
    python -m tests.mutants --match gravity --verbose
    python -m tests.mutants --stale             # mutants whose text is no longer in the source

The source is never changed: mutants live in a copy in a temporary folder. First the chosen tests must pass without any
change there. A mutant is killed if one of its tests fails, survives if all pass, and is out of time after `--seconds`.
The command fails if one survives that is not explained, or if one no longer fits the source.

A survivor is a missing test. Write it, with the kind of evidence that its folder asks for, and name it in the list.
"""
