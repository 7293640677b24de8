"""Studies: designs of experiments, sweeps over them, their stores and plots."""
