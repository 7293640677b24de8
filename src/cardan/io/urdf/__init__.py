"""URDF, the robot description of ROS."""
