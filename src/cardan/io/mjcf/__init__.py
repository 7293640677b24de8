"""MJCF, the model files of MuJoCo: what concerns dynamics is read, and whatever else does is told as lost."""
