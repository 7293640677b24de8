"""The equations of motion, one theory a file, all filling one contract."""
