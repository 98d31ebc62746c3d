"""The race explorer for a user's own operations: several actors, one statement at a time, in every order."""
