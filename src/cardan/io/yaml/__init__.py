"""Cardan's own format: one YAML file describes a mechanism with everything that the builder can say."""
