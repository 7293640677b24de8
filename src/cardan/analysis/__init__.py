"""What users ask of a model: batched numbers, checks and reports."""
