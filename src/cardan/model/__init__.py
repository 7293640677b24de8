"""What a mechanism is: bodies, joints, frames, the tree they span, and the frozen model."""
