"""What all errors of Fencerow have in common."""
