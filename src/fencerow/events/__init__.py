"""Events published in the user's transaction, read by groups in order."""
