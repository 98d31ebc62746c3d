"""What goes when it is old enough: finished jobs in periods, the rest in short batches."""
