"""What plays, breaks and checks: each room of fencerow_proof that has no folder of its own beside this one."""
