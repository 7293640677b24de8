"""Kinematic diagrams of mechanisms: flat drawings of bodies, joints and force elements."""
