"""What engineers do with a model: equilibrium, linear models, modes, inverse kinematics, identification, synthesis."""
