"""A history of everything that was done to the jobs, and a checker that decides from it whether the promises held."""
