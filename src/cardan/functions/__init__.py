"""What users call: functions of a model and its state, on arrays."""
