"""MJCF, the model files of MuJoCo. Unsupported features that concern dynamics are listed in `model.losses`."""
