"""What a mechanism is at a configuration: assembly, rows kept, planarity, redundancy, condition."""
