"""Identification: regressors, base parameters, excitation, estimates with their uncertainty."""
