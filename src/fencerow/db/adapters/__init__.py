"""The drivers whose connections users lend us, one file each; a driver is imported there and nowhere else."""
